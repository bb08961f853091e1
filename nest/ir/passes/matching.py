"""What passes that look for patterns of nodes share: who uses a value, and which node made it."""

from __future__ import annotations

from nest.ir.program import Function, Node, Value

__all__ = ["maker", "only_use", "uses_in"]


def uses_in(function: Function) -> dict[int, list[Node | None]]:
    """The nodes that use each value, once for each operand; None stands for a result of the function."""
    found: dict[int, list[Node | None]] = {}
    for node in function.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                found.setdefault(id(x), []).append(node)
    for value in function.results:
        found.setdefault(id(value), []).append(None)
    return found


def maker(x: object, *ops: str) -> Node | None:
    """The node that made a value, if it is one of these ops; None for everything else."""
    node = x.node if isinstance(x, Value) else None
    return node if node is not None and node.op in ops else None


def only_use(value: Value, uses: dict[int, list[Node | None]], *ops: str) -> Node | None:
    """The one node that uses a value, once, if it is one of these ops."""
    found = uses.get(id(value), [])
    if len(found) != 1 or found[0] is None or found[0].op not in ops:
        return None
    return found[0]
