"""`bindings.json`: which checkpoint tensor is which parameter of the definition.

A flat map from definition path to tensor name works as it is. `{i}` in both stands for any index of a block
array. Where a parameter is not a stored tensor as it is, the value is an operation instead of a name:

    {"op": "slice", "of": "h.{i}.attn.c_attn.bias", "axis": 0, "start": 0, "stop": "D"}

`of` is a name or another operation (for concat, a list of them); sizes are integers or expressions over
generics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from nest.ir.parammap import STORED_DTYPES, Cast, Concat, Expr, Reshape, Slice, Source, Transpose, Zeros
from nest.registry._size import evaluate_size

__all__ = ["Bindings", "Rule", "parse_bindings"]

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "slice": ("of", "axis", "start", "stop"),
    "transpose": ("of", "perm"),
    "reshape": ("of", "shape"),
    "concat": ("of", "axis"),
    "cast": ("of", "dtype"),
    "zeros": ("shape", "dtype"),
}


@dataclass(frozen=True)
class Rule:
    """One line of the map: a definition path (perhaps a template) and what it is made of."""

    path: str
    value: Any

    @property
    def is_template(self) -> bool:
        return _PLACEHOLDER.search(self.path) is not None

    def match(self, param: str) -> dict[str, str] | None:
        """The index of each placeholder where `param` fits the path, else None."""
        found = _pattern(self.path).fullmatch(param)
        return None if found is None else found.groupdict()

    def expression(self, indices: Mapping[str, str], generics: Mapping[str, int | str]) -> Expr:
        """The expression for one parameter.

        Raises:
            BindingError: a size names a generic that is not there.
        """
        return _expression(self.value, indices, generics)


@dataclass(frozen=True)
class Bindings:
    """The rules of an entry.

    `ties` maps a tensor that a checkpoint may repeat to the one that is bound (equal bytes are demanded);
    `ignore` lists tensors that are no parameters, `{i}` standing for any index.
    """

    rules: tuple[Rule, ...]
    ties: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()

    def ignores(self, tensor: str) -> bool:
        """Whether `tensor` is on the list of those that are no parameters."""
        return any(_pattern(name).fullmatch(tensor) for name in self.ignore)


def parse_bindings(data: Any) -> tuple[Bindings, list[tuple[str, str]]]:
    """Check the parsed JSON of a `bindings.json`: the bindings, and (key, fault) for everything wrong."""
    if not isinstance(data, dict):
        return Bindings(()), [("", f"expected an object of definition paths; came {type(data).__name__}")]
    if not isinstance(data.get("bindings"), dict):
        data = {"bindings": data}
    ties, ignore = data.get("ties", {}), data.get("ignore", [])
    rules = tuple(Rule(path, value) for path, value in data["bindings"].items())
    faults = [
        (key, "unknown key beside 'bindings', 'ties', 'ignore'") for key in data if key not in _SECTIONS
    ]
    for rule in rules:
        faults += [
            (rule.path, fault) for fault in _faults_of(rule.value, set(_PLACEHOLDER.findall(rule.path)))
        ]
    if not (isinstance(ties, dict) and all(isinstance(name, str) for name in ties.values())):
        faults.append(("ties", "expected an object from tensor name to tensor name"))
    if not (isinstance(ignore, list) and all(isinstance(name, str) for name in ignore)):
        faults.append(("ignore", "expected a list of tensor names"))
    return (Bindings(()) if faults else Bindings(rules, ties, tuple(ignore))), faults


_SECTIONS = ("bindings", "ties", "ignore")


@cache
def _pattern(template: str) -> re.Pattern[str]:
    pieces, end = [], 0
    seen: set[str] = set()
    for found in _PLACEHOLDER.finditer(template):
        name = found.group(1)
        pieces += [
            re.escape(template[end : found.start()]),
            rf"(?P={name})" if name in seen else rf"(?P<{name}>\d+)",
        ]
        seen.add(name)
        end = found.end()
    return re.compile("".join([*pieces, re.escape(template[end:])]))


def _faults_of(value: Any, known: set[str]) -> Iterator[str]:
    if isinstance(value, str):
        for name in sorted(set(_PLACEHOLDER.findall(value)) - known):
            yield f"'{{{name}}}' in '{value}' is not in the definition path"
        return
    if not isinstance(value, dict) or value.get("op") not in _OPERATIONS:
        yield f"expected a tensor name or an operation ({', '.join(_OPERATIONS)}); came {value!r:.80}"
        return
    fields = _OPERATIONS[value["op"]]
    yield from (f"'{value['op']}' has no field '{name}'" for name in value if name not in (*fields, "op"))
    for name in fields:
        if name not in value:
            yield f"'{value['op']}' needs '{name}'"
        elif name != "of" and not _is_field(name, value[name]):
            yield f"'{name}' of '{value['op']}' is not {_FIELD_WORDS[name]}; came {value[name]!r:.80}"
    if "of" not in fields or "of" not in value:
        return
    operands = value["of"]
    if isinstance(operands, list) != (value["op"] == "concat"):
        yield f"'of' of '{value['op']}' is {'a list' if value['op'] == 'concat' else 'one name or operation'}"
        return
    for operand in operands if isinstance(operands, list) else [operands]:
        yield from _faults_of(operand, known)


_SIZE = "an integer or an expression over generics"
_FIELD_WORDS = {
    "axis": _SIZE,
    "start": _SIZE,
    "stop": _SIZE,
    "perm": f"a list, each {_SIZE}",
    "shape": f"a list, each {_SIZE}",
    "dtype": f"one of {', '.join(STORED_DTYPES)}",
}


def _is_field(name: str, value: Any) -> bool:
    if name == "dtype":
        return value in STORED_DTYPES
    if name in ("perm", "shape"):
        return isinstance(value, list) and all(_is_field("axis", item) for item in value)
    return type(value) in (int, str)


def _expression(value: Any, indices: Mapping[str, str], generics: Mapping[str, int | str]) -> Expr:
    if isinstance(value, str):
        return Source(_PLACEHOLDER.sub(lambda found: indices[found.group(1)], value))

    def size(name: str) -> int:
        return evaluate_size(value[name], generics)

    def sizes(name: str) -> tuple[int, ...]:
        return tuple(evaluate_size(item, generics) for item in value[name])

    operation = value["op"]
    if operation == "zeros":
        return Zeros(sizes("shape"), value["dtype"])
    if operation == "concat":
        return Concat(tuple(_expression(part, indices, generics) for part in value["of"]), size("axis"))
    operand = _expression(value["of"], indices, generics)
    if operation == "slice":
        return Slice(operand, size("axis"), size("start"), size("stop"))
    if operation == "transpose":
        return Transpose(operand, sizes("perm"))
    if operation == "reshape":
        return Reshape(operand, sizes("shape"))
    return Cast(operand, value["dtype"])
