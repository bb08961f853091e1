"""Products that are kept by heads: keys and values of a window, written where they stay instead of copied there.

`assign(permute(reshape(slice(linear(x, weight, bias)))))` of both halves of a packed product becomes one `assign` of
two states, whose operands are those of the product. Only torch's rule for `assign` knows it.
"""

from __future__ import annotations

from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.program import Function, Node, Program, Value

__all__ = ["keep_by_heads"]


def keep_by_heads(program: Program) -> None:
    """Rewrite, in place, the pairs of states that are assigned the halves of one product."""
    for function in program.functions():
        halves: dict[int, list[tuple[Node, Node, Node]]] = {}
        for node in function.nodes:
            found = _half(node)
            if found is not None:
                halves.setdefault(id(found[1]), []).append((node, *found))
        for pair in halves.values():
            if len(pair) == 2 and _whole(pair[0], pair[1]):
                _join(function, *pair)


def _half(node: Node) -> tuple[Node, Node] | None:
    """The cut and the product that an assigned state is a half of, by heads."""
    if node.op != "assign" or "*" in node.attrs["path"]:
        return None
    turned = _made_by(node.inputs[0], "permute")
    shaped = (
        _made_by(turned.inputs[0], "reshape") if turned and turned.attrs["axes"] == (0, 2, 1, 3) else None
    )
    cut = _made_by(shaped.inputs[0], "slice") if shaped else None
    product = _made_by(cut.inputs[0], "linear") if cut and cut.attrs["axis"] == 2 else None
    return (cut, product) if cut and product else None


def _made_by(x: object, op: str) -> Node | None:
    node = x.node if isinstance(x, Value) else None
    return node if node is not None and node.op == op else None


def _whole(one: tuple[Node, Node, Node], other: tuple[Node, Node, Node]) -> bool:
    """Whether they are the first and the second half, in this order."""
    (_, first, product), (_, second, _) = one, other
    middle, end = first.attrs["stop"], product.outputs[0].type.shape[-1]
    zero = first.attrs["start"].value == 0
    met = bool(second.attrs["start"].same(middle) and second.attrs["stop"].same(end))
    return zero and met and bool((middle + middle).same(end))


def _join(function: Function, one: tuple[Node, Node, Node], other: tuple[Node, Node, Node]) -> None:
    (first, _, product), (second, _, _) = one, other
    second.inputs = product.inputs
    second.attrs = {"path": first.attrs["path"], "second": second.attrs["path"]}
    function.nodes.remove(first)
    eliminate_dead_code(function)
