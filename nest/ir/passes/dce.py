"""Dead code elimination."""

from __future__ import annotations

from nest.ir.program import Function, Node, Value

__all__ = ["EFFECTS", "eliminate_dead_code", "has_effect"]

EFFECTS = frozenset({"assign", "update", "attend_step"})


def has_effect(node: Node) -> bool:
    """Whether a node writes a state, itself or in what it calls."""
    if node.op in EFFECTS:
        return True
    inner = [f for f in node.attrs.values() if isinstance(f, Function)]
    return any(f.writes for f in inner)


def eliminate_dead_code(function: Function) -> int:
    """Drop, in place, the nodes whose results nothing uses and that write no state; how many were dropped."""
    used = {id(v) for v in function.results}
    kept: list[Node] = []
    for node in reversed(function.nodes):
        if has_effect(node) or any(id(v) in used for v in node.outputs):
            kept.append(node)
            used.update(id(x) for x in node.inputs if isinstance(x, Value))
    dropped = len(function.nodes) - len(kept)
    function.nodes = kept[::-1]
    return dropped
