"""Which values an entry's integer arguments may have, from what the program does with them.

Compiled code cannot raise: an index out of range is clamped, dropped or read as garbage, differently on each backend.
So an argument that reaches a `take` as indices, or a state as a position, is checked on the host before anything runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from nest.ir.dim import Dim
from nest.ir.program import Function, Node, Value

__all__ = ["Range", "argument_ranges"]

# Ops whose result holds the elements of their first input, and nothing else.
_MOVES = frozenset({"reshape", "permute", "slice", "broadcast_to"})


@dataclass(frozen=True)
class Range:
    """Each element plus `offset` is at least 0 and below `size`; `reason` says what it indexes."""

    size: Dim
    reason: str
    offset: int = 0


def argument_ranges(function: Function) -> dict[str, list[Range]]:
    """The ranges of each argument of an entry, in its own symbols and the session's."""
    found = _ranges(function, {})
    return {v.name or "": found[i] for i, v in enumerate(function.arguments) if found[i]}


def _ranges(function: Function, known: dict[int, list[list[Range]]]) -> list[list[Range]]:
    """By argument; each function is looked at once."""
    if id(function) in known:
        return known[id(function)]
    # value -> the argument whose elements it holds, and what was added to them.
    source = {id(v): (i, 0) for i, v in enumerate(function.arguments)}
    result: list[list[Range]] = [[] for _ in function.arguments]
    for node in function.nodes:
        if (moved := _moved(node, source)) is not None:
            source[id(node.outputs[0])] = moved
        for position, found in _uses(node, known):
            origin = _origin(node, position, source)
            if origin is not None:
                index, offset = origin
                shifted = [Range(r.size, r.reason, r.offset + offset) for r in found]
                result[index] += [r for r in shifted if str(r) not in map(str, result[index])]
    known[id(function)] = result
    return result


def _origin(node: Node, position: int, source: dict[int, tuple[int, int]]) -> tuple[int, int] | None:
    x = node.inputs[position]
    return source.get(id(x)) if isinstance(x, Value) else None


def _moved(node: Node, source: dict[int, tuple[int, int]]) -> tuple[int, int] | None:
    """The origin of a node's result, where its elements are those of an argument plus a number."""
    if node.op in _MOVES:
        return _origin(node, 0, source)
    if node.op in ("add", "sub") and isinstance(node.inputs[1], int):
        origin = _origin(node, 0, source)
        if origin is not None:
            change = node.inputs[1] if node.op == "add" else -node.inputs[1]
            return origin[0], origin[1] + change
    return None


def _uses(node: Node, known: dict[int, list[list[Range]]]) -> list[tuple[int, list[Range]]]:
    """Input positions of a node that are indices, with their ranges in the symbols of the node's function."""
    if node.op in ("take", "take_along"):
        table = node.inputs[0]
        if isinstance(table, Value):
            reason = "rows of a table" if node.op == "take" else "places of an axis"
            return [(1, [Range(table.type.shape[node.attrs["axis"]], reason)])]
    if node.op == "update":
        value, axis = node.inputs[0], node.attrs["axis"]
        if isinstance(value, Value):
            room = node.outputs[0].type.shape[axis] + 1 - value.type.shape[axis]
            return [(1, [Range(room, "slots of a cache")])]
    if node.op == "call":
        symbols = node.attrs["symbols"]
        inner = _ranges(node.attrs["function"], known)
        return [
            (i, [Range(r.size.substitute(symbols), r.reason, r.offset) for r in ranges])
            for i, ranges in enumerate(inner)
        ]
    return []
