"""Which nodes use which values, and what is of no use."""

from __future__ import annotations

from nest.backends.source.fold import Item, Loop
from nest.ir.program import Node, Value

__all__ = ["EFFECTS", "drop_unused", "touches_state", "uses_of"]

EFFECTS = frozenset({"update", "assign", "attend_step", "while_loop"})
"""Ops that are statements whatever uses their results."""


def touches_state(item: Item) -> bool:
    if isinstance(item, Loop):
        return any(map(touches_state, item.body))
    if item.op == "call":
        return bool(item.attrs["function"].uses_state) and "*" in item.attrs["path"]
    return item.op in ("read", "update", "assign") and "*" in item.attrs["path"]


def uses_of(items: list[Item], results: list[Value]) -> dict[int, list[Node | None]]:
    """The nodes that use each value; None stands for the return, and for the carrying of a loop."""
    uses: dict[int, list[Node | None]] = {}

    def walk(items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Loop):
                for carry in item.carries:
                    uses.setdefault(id(carry.init), []).append(None)
                    uses.setdefault(id(carry.result), []).append(None)
                walk(item.body)
                continue
            for x in item.inputs:
                if isinstance(x, Value):
                    uses.setdefault(id(x), []).append(item)

    walk(items)
    for value in results:
        uses.setdefault(id(value), []).append(None)
    return uses


def drop_unused(items: list[Item], results: list[Value]) -> None:
    """Drop, in place, what computes nothing that is used and writes no state."""
    while True:
        uses = uses_of(items, results)
        if not _drop(items, uses):
            return


def _drop(items: list[Item], uses: dict[int, list[Node | None]]) -> bool:
    dropped = False
    for item in list(items):
        if isinstance(item, Loop):
            dropped |= _drop(item.body, uses)
        elif item.op not in EFFECTS and not any(uses.get(id(v)) for v in item.outputs):
            if item.op == "call" and item.attrs["function"].writes:
                continue
            items.remove(item)
            dropped = True
    return dropped
