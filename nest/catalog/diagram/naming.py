"""What boxes are called, in the definition's own words. A text keeps its dims and types, to be read in any scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

from nest.catalog.diagram.folding import Repeat
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, Node, Operand, Path, Value, path_text
from nest.ir.types import TensorType
from nest.layers import ops

__all__ = [
    "Slice",
    "Text",
    "call_class",
    "call_name",
    "element_slice",
    "kind_of",
    "note_of",
    "repeat_name",
    "source_text",
    "state_lines",
    "title_of",
]

Text = tuple["str | Dim | DType | TensorType", ...]
"""Pieces that are written one after another."""

PLUMBING = frozenset({"reshape", "permute", "cast", "broadcast_to", "expand", "squeeze", "split", "flip"})
"""Ops that move or convert numbers and compute none."""

STATES = {"read": "read", "assign": "write", "update": "write"}
QUIET_ATTRS = frozenset(
    {"path", "function", "symbols", "dtypes", "cond", "body", "shape", "values", "batch_axis"}
)
"""What a box says by its name, its inside or the type of what leaves it."""

LISTS = frozenset({"axes"})
"""Attributes that are lists of axes; others are lists because an op may have a number for each axis."""


@dataclass(frozen=True)
class Slice:
    """The elements of a block array that a folded box stands for; `whole` where that is all of them."""

    path: Path
    start: int
    stop: int
    period: int
    whole: bool


def element_slice(repeat: Repeat) -> Slice:
    """Which elements a repeat runs over, of the run's first node."""
    mark = repeat.body[0].loops[repeat.depth]
    length = repeat.period * repeat.count
    whole = repeat.period == 1 and repeat.count == mark.count
    return Slice(repeat.path, repeat.start, repeat.start + length, repeat.period, whole)


def kind_of(node: Node) -> str:
    """`call`, `loop`, `read`, `write`, `plumbing` or `op`: how a box looks."""
    if node.op in ("call", "while_loop"):
        return {"call": "call", "while_loop": "loop"}[node.op]
    return STATES.get(node.op, "plumbing" if node.op in PLUMBING else "op")


def path_name(path: Path, element: Slice | None) -> str:
    """A path as Python would write it: `layers[1:21:3].mlp`, or `layers` where all elements are meant."""
    if element is None or len(path) <= len(element.path) or path[: len(element.path)] != element.path:
        return path_text(path)
    depth = len(element.path)
    text = path_text(path[:depth])
    if not element.whole:
        at = int(path[depth])
        step = f":{element.period}" if element.period > 1 else ""
        text += f"[{at}:{element.stop}{step}]"
    return ".".join([text, *map(str, path[depth + 1 :])])


def repeat_name(element: Slice) -> tuple[str, Text | None]:
    """`layers[1:22]` and `3 in turn`: what a box runs over that repeats more than one box."""
    name = path_text(element.path)
    name = name if element.whole else f"{name}[{element.start}:{element.stop}]"
    return name, (f"{element.period} in turn",) if element.period > 1 else None


def call_name(node: Node, element: Slice | None) -> str:
    """`encoder_layers` or `self_attn.attend`: `forward` goes without saying."""
    function, path = node.attrs["function"].name, path_name(node.attrs["path"], element)
    if not path:
        return str(function)
    return path if function in ("forward", "__call__") else f"{path}.{function}"


def call_class(node: Node) -> tuple[str, str]:
    """The class whose method a call runs, and the module that it is written in."""
    block = node.attrs["function"].block
    return block.name, block.module


def state_lines(function: Function) -> list[tuple[str, Text]]:
    """Which states a call reads, writes, and updates, which is both: an update gives the whole of the state."""
    reads, writes = ({_state(path) for path in paths} for paths in (function.reads, function.writes))
    found: list[tuple[str, Text]] = []
    for word, names in (("reads", reads - writes), ("updates", reads & writes), ("writes", writes - reads)):
        if names:
            found.append(("state", (f"{word} {', '.join(sorted(names))}",)))
    return found


def _state(path: Path) -> str:
    """The name of a state, which is the same in every element of an array."""
    return str(path[-1])


def note_of(node: Node, element: Slice | None) -> Text | None:
    """What is static of an op: its attributes, the state it touches, numbers among its inputs."""
    if node.op == "call":
        return None
    pieces: list[Any] = []
    if node.op in STATES:
        pieces.append(path_name(node.attrs["path"], element))
    numbers = [x for x in node.inputs if isinstance(x, Dim | bool | int | float)]
    if numbers:
        pieces += ([" "] if pieces else []) + _slots(node)
    for name, value in node.attrs.items():
        value = value[0] if isinstance(value, tuple) and len(value) == 1 and name not in LISTS else value
        if name in QUIET_ATTRS or value is None or value is False or _usual(node.op, name, value):
            continue
        pieces += [" "] if pieces else []
        pieces += [name] if value is True else _attr(name, value)
    return tuple(pieces) or None


@cache
def _defaults(op: str) -> dict[str, Any]:
    function = getattr(ops, op, None)
    return {} if function is None else {n: p.default for n, p in signature(function).parameters.items()}


def _usual(op: str, name: str, value: Any) -> bool:
    """Whether an attribute is what the op has where nobody gives it."""
    usual = _defaults(op).get(name)
    return usual is not None and str(usual) == str(value)


def _attr(name: str, value: Any) -> list[Any]:
    if name in ("axes", "equation", "dtype"):
        return _pieces(value)
    return [f"{name}=", *_pieces(value)]


def _pieces(value: Any) -> list[Any]:
    if isinstance(value, Dim | DType):
        return [value]
    if isinstance(value, tuple):
        found: list[Any] = ["["]
        for position, item in enumerate(value):
            found += [", "] if position else []
            found += _pieces(item)
        return [*found, "]"]
    return [_number(value)]


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _slots(node: Node) -> list[Any]:
    """`(·, 0.5)`: where the numbers stand among the tensors."""
    found: list[Any] = ["("]
    inputs = list(node.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    for position, x in enumerate(inputs):
        found += [", "] if position else []
        found += ["·"] if isinstance(x, Value) else ["none"] if x is None else _pieces(x)
    return [*found, ")"]


def source_text(value: Value, position: int, node: Node | None, element: Slice | None) -> tuple[str, Text]:
    """A parameter or a constant that a box takes, as a line of the box."""
    source = value.node
    label = ""
    if node is not None and node.op == "call":
        label = f"{node.attrs['function'].signature.parameters[position].name} = "
    if source is None:
        return ("constant", (label, "?"))
    if source.op == "param":
        return ("param", (label, path_name(source.attrs["path"], element), ": ", value.type))
    numbers = [x for x in source.inputs if isinstance(x, Dim | bool | int | float)]
    given = _operands(numbers) if numbers else []
    return ("constant", (label, source.op, *given, ": ", value.type))


def _operands(numbers: Sequence[Operand]) -> list[Any]:
    found: list[Any] = ["("]
    for position, x in enumerate(numbers):
        found += [", "] if position else []
        found += _pieces(x)
    return [*found, ")"]


def title_of(node: Node, element: Slice | None) -> Text:
    """The whole of it: what is called or computed, and the line of the definition."""
    note = note_of(node, element) or ()
    name = call_name(node, element) if node.op == "call" else node.op
    signature: list[Any] = []
    if node.op == "call":
        callee = node.attrs["function"]
        signature = [" of ", callee.block.name, *([f": {_first(callee.doc)}"] if callee.doc else [])]
    where = f"\n{node.location.file}:{node.location.line}: {node.location.source}" if node.location else ""
    return (name, *([" "] if note else []), *note, *signature, where)


def _first(doc: str) -> str:
    return doc.strip().splitlines()[0]
