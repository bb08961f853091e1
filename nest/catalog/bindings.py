"""Which tensor of the checkpoint each parameter is: the rules as written, and every parameter for the page's search."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from nest.catalog.facts import Facts
from nest.catalog.markup import code, element, table
from nest.ir import parameters
from nest.ir.parammap import Source, TensorSpec
from nest.registry.tensors import read_tensors
from nest.weights import resolve

__all__ = ["every_parameter", "rules"]

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


def rules(facts: Facts) -> str:
    """The rules of `bindings.json` as a table, and the search over all parameters, which a script fills."""
    entry = facts.entry
    rows = [
        (code(rule.path), code(rule.expression(_themselves(rule.path), entry.generics)))
        for rule in entry.bindings.rules
    ]
    parts = [
        "### Bindings",
        f"{len(rows)} rules bind {len(parameters(facts.program))} parameters, totally in both directions: a parameter "
        "without a tensor and a tensor that nothing uses are errors. `{i}` stands for every index of a block array.",
        _search() if read_tensors(entry.directory, facts.name) else "",
        '<details class="nest-fold" data-search-exclude><summary>The rules</summary>',
        table(("Parameter of the definition", "Tensor of the checkpoint"), rows, class_="nest-names"),
        "</details>",
        _aside(entry.bindings.ties, entry.bindings.ignore),
    ]
    return "\n\n".join(part for part in parts if part)


def _themselves(path: str) -> dict[str, str]:
    """Each placeholder standing for itself, so that a rule's expression shows it."""
    return {name: f"{{{name}}}" for name in _PLACEHOLDER.findall(path)}


def _search() -> str:
    return (
        '<div class="nest-search" id="nest-bindings" data-source="bindings.json" hidden>'
        '<label>Find a parameter or tensor <input type="search" autocomplete="off" '
        'placeholder="layers.3 weight"></label>'
        '<p role="status"></p>'
        '<div class="nest-scroll" tabindex="0" role="region" aria-label="Parameters found" hidden>'
        '<table class="nest-names"><thead><tr><th scope="col">Parameter</th>'
        '<th scope="col">Tensor of the checkpoint</th><th scope="col">Shape</th></tr></thead>'
        "<tbody></tbody></table></div></div>"
    )


def _aside(ties: Mapping[str, str], ignored: tuple[str, ...]) -> str:
    items = [
        f"{code(again)} may repeat {code(bound)}, to the byte; the latter is bound."
        for again, bound in ties.items()
    ]
    if ignored:
        items.append(f"No parameters, and left out: {', '.join(map(code, ignored))}.")
    return element("ul", "".join(element("li", item) for item in items)) if items else ""


def every_parameter(facts: Facts) -> bytes:
    """JSON of all parameters in definition order: path, shape, what it is made of, and the stored tensor's type."""
    params = parameters(facts.program)
    listed = read_tensors(facts.entry.directory, facts.name)
    if listed is None:
        return b"[]\n"
    types: Mapping[str, TensorSpec] = listed.specs
    made = resolve(
        params, facts.entry.bindings, types, source=facts.name, generics=_sizes(facts.entry.generics)
    )
    rows = [
        [
            path,
            f"{spec.dtype}[{', '.join(map(str, spec.shape))}]",
            str(made[path]),
            _stored(made[path], types),
        ]
        for path, spec in params.items()
    ]
    return ("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n").encode()


def _stored(expression: object, types: Mapping[str, TensorSpec]) -> str:
    """The type in the file, where the parameter is a tensor as it is stored."""
    return str(types.get(expression.name, "")) if isinstance(expression, Source) else ""


def _sizes(generics: Mapping[str, object]) -> dict[str, int | str]:
    return {name: value for name, value in generics.items() if isinstance(value, int | str)}
