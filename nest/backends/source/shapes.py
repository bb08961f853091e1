"""Comments of the shapes that a statement makes by reshaping or permuting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from nest.ir.dim import Dim
from nest.ir.program import Node, Signature, Value
from nest.ir.types import shape_text

__all__ = ["shape_note"]

_MOVING = frozenset({"reshape", "permute"})


def shape_note(nodes: Sequence[Node], inside: Callable[[Node], Iterable[Node]], signature: Signature) -> str:
    """`# [B, Heads, N, D//Heads]` of a statement that ends so; `# reshaped: ...` of what is reshaped inside it.

    Args:
        nodes: what the statement computes.
        inside: the nodes that are printed inside the expression of one.
        signature: of the method; it has the author's spelling of sizes.
    """
    types = (*(p.type for p in signature.parameters), *signature.results)
    spelled = [dim for type_ in types for dim in type_.shape]

    def text(value: Value) -> str:
        return shape_text(_as_spelled(dim, spelled) for dim in value.type.shape)

    found = list(dict.fromkeys(text(value) for top in nodes for value in _moved(top, inside)))
    if not found:
        return ""
    whole = [text(top.outputs[0]) for top in nodes if top.outputs]
    return f"# {found[0]}" if found == whole else f"# reshaped: {', '.join(found)}"


def _as_spelled(dim: Dim, spelled: Sequence[Dim]) -> Dim:
    return next((known for known in spelled if known.same(dim)), dim)


def _moved(node: Node, inside: Callable[[Node], Iterable[Node]]) -> Iterator[Value]:
    """The end of each chain of reshapes and permutations."""
    chained: set[int] = set()
    for one in (node, *inside(node)):
        if one.op in _MOVING:
            if id(one.outputs[0]) not in chained:
                yield one.outputs[0]
            chained |= {id(x) for x in one.inputs}
