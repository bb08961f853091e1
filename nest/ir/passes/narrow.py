"""Narrowing: what works on each position by itself is done only for the positions that are used afterwards.

`take_along(head(norm(x)), last)` becomes `head(norm(take_along(x, last)))`: a language model's head, most of a small
model's work, is then one row a prompt.
"""

from __future__ import annotations

from typing import cast

from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.rewrite import replace_value
from nest.ir.program import Function, Node, Value
from nest.ir.types import TensorType

__all__ = ["narrow"]

_PICKS = frozenset({"take", "take_along", "slice"})

# Ops whose result at a place of the axes before the last depends on the first operand at that place alone.
_ROWWISE = frozenset({"linear", "quantized_linear", "layer_norm", "rms_norm"})


def narrow(function: Function) -> int:
    """Move picks before row-wise ops, in place; how many were moved."""
    moved = 0
    while (pick := next((n for n in function.nodes if _movable(n, function)), None)) is not None:
        _move(pick, function)
        moved += 1
    if moved:
        eliminate_dead_code(function)
    return moved


def _movable(pick: Node, function: Function) -> bool:
    """Whether a node picks positions of a row-wise op's result, of which nothing else is used."""
    made = pick.inputs[0] if pick.op in _PICKS else None
    if not isinstance(made, Value) or made.node is None or made.node.op not in _ROWWISE:
        return False
    if pick.attrs["axis"] == made.type.rank - 1 or not _one_for_all(pick):
        return False
    return _uses(made, function) == 1


def _one_for_all(pick: Node) -> bool:
    """Whether the same positions are picked for each element of the last axis."""
    if pick.op != "take_along":
        return True
    index = pick.inputs[1]
    return isinstance(index, Value) and index.type.shape[-1].value == 1


def _uses(value: Value, function: Function) -> int:
    return sum(x is value for n in function.nodes for x in n.inputs) + sum(
        r is value for r in function.results
    )


def _move(pick: Node, function: Function) -> None:
    out, made = pick.outputs[0], cast(Value, pick.inputs[0])
    op = cast(Node, made.node)
    source = cast(Value, op.inputs[0])
    type_ = TensorType((*out.type.shape[:-1], source.type.shape[-1]), source.type.dtype)
    attrs = dict(pick.attrs)
    before = Node(pick.op, (source, *pick.inputs[1:]), attrs, (type_,), pick.location, pick.loops)
    after = Node(
        op.op, (before.outputs[0], *op.inputs[1:]), dict(op.attrs), (out.type,), op.location, pick.loops
    )
    at = function.nodes.index(pick)
    function.nodes[at : at + 1] = [before, after]
    replace_value(function, out, after.outputs[0])
