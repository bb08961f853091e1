"""Which states a loop may carry in part: the slots up to the last one that is written, not the whole capacity.

A `Loop` copies what it carries for each iteration, and attention goes through all slots that there are. A state whose
slots are written one after the other, and read by attention alone that sees no later slot, needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from nest.ir.program import Function, Node, Operand, Path, Value, path_text

__all__ = ["growing"]

_UNSURE = -1, -1


def growing(cond: Function, body: Function, path: Path) -> tuple[int, dict[str, int]]:
    """The states that the body of a loop writes and that may grow.

    Args:
        path: of the block whose functions they are.

    Returns:
        Which of the body's arguments says where their slots are written, and of each of them, by definition path, the
        axis of slots. Those whose slots another argument says stay as they are.
    """
    found: dict[str, tuple[int, int]] = {}
    arguments = {id(a): i for i, a in enumerate(body.arguments)}
    _visit(body, path, arguments, found)
    outside = {path_text((*path, *p)) for p in (*cond.reads, *cond.writes)}
    sure = {p: f for p, f in found.items() if f != _UNSURE and p not in outside}
    first = next((argument for argument, _ in sure.values()), 0)
    return first, {p: axis for p, (argument, axis) in sure.items() if argument == first}


def _visit(
    function: Function, path: Path, arguments: Mapping[int, int], found: dict[str, tuple[int, int]]
) -> None:
    """Note what a function does with states.

    Args:
        arguments: which argument of the body a value is, by the value's id.
    """
    for node in function.nodes:
        if node.op == "call":
            callee: Function = node.attrs["function"]
            given = zip(callee.arguments, node.inputs, strict=True)
            inner = {id(a): arguments[id(x)] for a, x in given if id(x) in arguments}
            _visit(callee, (*path, *node.attrs["path"]), inner, found)
        elif node.op == "while_loop":
            region: Function = node.attrs["body"]
            found.update((path_text((*path, *p)), _UNSURE) for p in (*region.reads, *region.writes))
        elif node.op in ("read", "assign", "update"):
            name = path_text((*path, *node.attrs["path"]))
            fits = node.op == "update" and name not in found and _seen_so_far(node, function)
            fits = fits and id(node.inputs[1]) in arguments
            found[name] = (arguments[id(node.inputs[1])], node.attrs["axis"]) if fits else _UNSURE


def _seen_so_far(update: Node, function: Function) -> bool:
    """Whether an update writes one slot of each row, and its result is looked at by attention up to that slot alone."""
    whole, (value, pos) = update.outputs[0], update.inputs
    one = isinstance(value, Value) and value.type.shape[update.attrs["axis"]].value == 1
    if not one or update.attrs["batch_axis"] != 0 or any(r is whole for r in function.results):
        return False
    uses = [(n, at) for n in function.nodes for at, x in enumerate(n.inputs) if x is whole]
    return all(at in (1, 2) and _looks_back(node, pos) for node, at in uses)


def _looks_back(node: Node, pos: Operand | None) -> bool:
    """Whether a node is attention of one query, which sees the slots 0 to `pos`."""
    if node.op != "attention" or not node.attrs["causal"]:
        return False
    query, _, _, own, kv_len, mask, bias, *_ = node.inputs
    alone = kv_len is None and mask is None and bias is None
    return alone and own is pos and isinstance(query, Value) and query.type.shape[2].value == 1
