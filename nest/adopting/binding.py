"""Bindings of an adopted checkpoint: those of the family's entries, fitted to the tensors that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nest.adopting.family import Family, Form
from nest.errors import BindingError
from nest.ir.parammap import TensorSpec
from nest.ir.types import ParamSpec
from nest.registry import Entry
from nest.registry.bindings import Rule, parse_bindings
from nest.weights import resolve

__all__ = ["Binding", "fitting_binding"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Binding:
    """Bindings as `bindings.json` has them, and the entry whose file they are, if they are one's."""

    content: Json
    entry: str | None = None


def fitting_binding(
    family: Family,
    form: Form,
    relatives: list[Entry],
    params: Mapping[str, ParamSpec],
    tensors: Mapping[str, TensorSpec],
    generics: Mapping[str, int | str],
    *,
    source: str,
) -> Binding:
    """The first bindings with which every parameter has its tensors and every tensor its use.

    Args:
        relatives: the entries of the same definition, the form's own first.
        source: names the checkpoint in errors.

    Raises:
        BindingError: no bindings fit; says what is wrong with those that come nearest.
    """
    faults: list[BindingError] = []
    for candidate in _candidates(family, form, relatives, params, tensors):
        bindings, wrong = parse_bindings(candidate.content)
        if wrong:
            continue
        try:
            resolve(params, bindings, tensors, source=source, generics=generics)
        except BindingError as error:
            faults.append(error)
            continue
        return candidate
    raise min(faults, key=lambda error: str(error).count("\n"))


def _candidates(
    family: Family,
    form: Form,
    relatives: list[Entry],
    params: Mapping[str, ParamSpec],
    tensors: Mapping[str, TensorSpec],
) -> Iterator[Binding]:
    for entry in relatives:
        own = {
            "bindings": {rule.path: rule.value for rule in entry.bindings.rules},
            "ties": dict(entry.bindings.ties),
            "ignore": list(entry.bindings.ignore),
        }
        yield Binding(own, entry.name)
        for variant in _variants(own, family.prefix):
            yield Binding(_fitted(variant, family, form, params, tensors))


def _variants(content: Json, prefix: str) -> Iterator[Json]:
    """The bindings under the names that other versions of the same model have.

    With every tensor's name inside the prefix or outside of it, and with a norm's parameters called as they were once.
    """
    placed = [content]
    if prefix:
        inside = any(name.startswith(prefix) for name in _names(content["bindings"]))
        placed.append(
            _renamed(content, (lambda n: n.removeprefix(prefix)) if inside else (lambda n: prefix + n))
        )
    for one in placed:
        yield one
        for other in (_renamed(one, _newer), _renamed(one, _older)):
            if other != one:
                yield other


def _newer(name: str) -> str:
    return re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", name))


def _older(name: str) -> str:
    return re.sub(r"(?<=\.LayerNorm)\.bias$", ".beta", re.sub(r"(?<=\.LayerNorm)\.weight$", ".gamma", name))


def _fitted(
    content: Json,
    family: Family,
    form: Form,
    params: Mapping[str, ParamSpec],
    tensors: Mapping[str, TensorSpec],
) -> Json:
    """The rules that have a parameter, and of ties and idle tensors those that have a tensor."""
    rules = {**content["bindings"], **family.rules}
    rules = {
        path: value
        for path, value in rules.items()
        if any(Rule(path, value).match(p) is not None for p in params)
    }
    bound = set(_names(rules))
    ties = {name: other for name, other in content["ties"].items() if name not in bound}
    idle = [*content["ignore"], *form.idle, *(family.prefix + name for name in form.idle if family.prefix)]
    ignore = [name for name in dict.fromkeys(idle) if _there(name, tensors) and name not in bound]
    return {"bindings": rules, **({"ties": ties} if ties else {}), **({"ignore": ignore} if ignore else {})}


def _names(value: Any) -> Iterator[str]:
    """The tensors that a value of bindings is made of."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        inner = value.get("of") if "op" in value else list(value.values())
        yield from _names(inner)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)


def _renamed(content: Json, rename: Any) -> Json:
    def of(value: Any) -> Any:
        if isinstance(value, str):
            return rename(value)
        if isinstance(value, list):
            return [of(one) for one in value]
        return {**value, "of": of(value["of"])} if "of" in value else value

    return {
        "bindings": {path: of(value) for path, value in content["bindings"].items()},
        "ties": {rename(name): rename(other) for name, other in content["ties"].items()},
        "ignore": [rename(name) for name in content["ignore"]],
    }


def _there(template: str, tensors: Mapping[str, TensorSpec]) -> bool:
    pattern = re.compile(r"\d+".join(map(re.escape, re.split(r"\{[A-Za-z_]\w*\}", template))))
    return any(pattern.fullmatch(name) for name in tensors)
