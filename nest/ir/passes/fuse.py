"""Fusing: the steps of a pre-norm block as few nodes, each of which a backend has one kernel for.

| made | of |
|---|---|
| `norm_linear` | a norm, the product after it, and its activation or gated pair of halves |
| `linear_add` | a product, and the residual that it is added to |
| `peak_of_linear` | a head, with the norm before it, and the largest of its products |
| `embed_tokens` | the embedding of one token a row, and of its position |

What a pattern's nodes give to others than each other leaves them as they are. Attention is fused by
`nest.ir.passes.fuse_attention`.
"""

from __future__ import annotations

from typing import Any, cast

from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.matching import maker, only_use, uses_in
from nest.ir.passes.rewrite import replace_value
from nest.ir.program import Function, Node, Value

__all__ = ["fuse"]

_NORMS = {"layer_norm": "layer", "rms_norm": "rms"}
_ALONE = ("reshape", "cast")
Uses = dict[int, list[Node | None]]


def fuse(function: Function) -> int:
    """Fuse what one function computes, in place; how many nodes were made. Attention comes before."""
    made = sum(_each(function, kind, rewrite) for kind, rewrite in _REWRITES)
    _share(function)
    return made


def _share(function: Function) -> None:
    """Let attention leave its parts to be put together by the product after it, where nothing else reads them."""
    uses = uses_in(function)
    for node in function.nodes:
        if node.op in ("attend_step", "attend_heard"):
            after = only_use(node.outputs[0], uses, "linear_add")
            node.attrs["split"] = after is not None and after.inputs[0] is node.outputs[0]


def _each(function: Function, op: str, rewrite: Any) -> int:
    """Rewrite every node of an op that can be; how many were."""
    made = 0
    for node in [n for n in function.nodes if n.op == op]:
        # A node may be gone with one before it.
        found = rewrite(node, uses_in(function)) if node in function.nodes else None
        if found is None:
            continue
        last, fused = found
        function.nodes[function.nodes.index(last)] = fused
        for old, new in zip(last.outputs, fused.outputs, strict=True):
            replace_value(function, old, new)
        # What is gone uses nothing any more.
        eliminate_dead_code(function)
        made += 1
    return made


def _norm_before(x: object, uses: Uses) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The operands (x, weight, bias) and attributes of a norm that makes a value for one user."""
    node = maker(x, *_NORMS)
    if node is None or len(uses[id(x)]) != 1:
        return None
    operands = (*node.inputs, *[None] * (3 - len(node.inputs)))
    return operands, {"kind": _NORMS[node.op], "eps": node.attrs["eps"]}


def _norm_linear(node: Node, uses: Uses) -> tuple[Node, Node] | None:
    norm = _norm_before(node.inputs[0], uses)
    if norm is None:
        return None
    operands, attrs = norm
    last, activation, gated = _activated(node, uses)
    attrs = {**attrs, "activation": activation, "gated": gated}
    inputs = (*operands, node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None)
    return last, Node("norm_linear", inputs, attrs, (last.outputs[0].type,), last.location, last.loops)


def _activated(node: Node, uses: Uses) -> tuple[Node, str | None, bool]:
    """The last node of a product with what follows it, its activation, and whether halves of it are multiplied."""
    after = only_use(node.outputs[0], uses, "gelu", "silu", "relu")
    if after is not None:
        return after, _activation(after), False
    gate = _gate(node, uses)
    return gate if gate is not None else (node, None, False)


def _activation(node: Node) -> str:
    return "gelu_tanh" if node.op == "gelu" and node.attrs["approximate"] else node.op


def _gate(node: Node, uses: Uses) -> tuple[Node, str, bool] | None:
    """activation(first half) * second half of a product."""
    cuts = uses.get(id(node.outputs[0]), [])
    if len(cuts) != 2 or any(c is None or not _is_half(c, node.outputs[0]) for c in cuts):
        return None
    first, second = sorted(cast(list[Node], cuts), key=lambda c: c.attrs["start"].value != 0)
    if first.attrs["start"].value != 0 or not second.attrs["start"].same(first.attrs["stop"]):
        return None
    acted = only_use(first.outputs[0], uses, "gelu", "silu", "relu")
    product = only_use(acted.outputs[0], uses, "mul") if acted is not None else None
    if acted is None or product is None or only_use(second.outputs[0], uses, "mul") is not product:
        return None
    return product, _activation(acted), True


def _is_half(cut: Node, whole: Value) -> bool:
    """Whether a node is one of two equal parts of a value's last axis."""
    if cut.op != "slice" or cut.attrs["axis"] != whole.type.rank - 1 or cut.attrs["step"] != 1:
        return False
    half, size = cut.outputs[0].type.shape[-1], whole.type.shape[-1]
    return (half + half).same(size) and (
        cut.attrs["start"].value == 0 or (cut.attrs["start"].same(half) and cut.attrs["stop"].same(size))
    )


def _linear_add(node: Node, uses: Uses) -> tuple[Node, Node] | None:
    added = only_use(node.outputs[0], uses, "add")
    if added is None:
        return None
    (other,) = [x for x in added.inputs if x is not node.outputs[0]] or [None]
    if not isinstance(other, Value) or other.type.rank != node.outputs[0].type.rank:
        return None
    if not all(a.same(b) for a, b in zip(other.type.shape, node.outputs[0].type.shape, strict=True)):
        return None
    inputs = (node.inputs[0], node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None, other)
    return added, Node("linear_add", inputs, {}, (added.outputs[0].type,), added.location, added.loops)


def _peak_of_linear(node: Node, uses: Uses) -> tuple[Node, Node] | None:
    """Only of one product a row: [B, V], or [B, 1, V] in that shape."""
    value = node.inputs[0]
    while (made := maker(value, *_ALONE)) is not None:
        if len(uses[id(value)]) != 1 or not made.outputs[0].type.shape[-1].same(_last(made)):
            return None
        # A cast to fewer bits makes numbers equal that are not.
        if made.op == "cast" and made.outputs[0].type.dtype.value != "f32":
            return None
        value = made.inputs[0]
    product = maker(value, "linear")
    if product is None or len(uses[id(value)]) != 1 or not _is_one_a_row(product.outputs[0], node.outputs[0]):
        return None
    if len(product.inputs) > 2 and product.inputs[2] is not None:
        return None
    norm = _norm_before(product.inputs[0], uses)
    operands, attrs = norm or ((product.inputs[0], None, None), {"kind": None, "eps": 0.0})
    inputs = (*operands, product.inputs[1], node.inputs[1] if len(node.inputs) > 1 else None)
    types = tuple(v.type for v in node.outputs)
    return node, Node("peak_of_linear", inputs, attrs, types, node.location, node.loops)


def _is_one_a_row(products: Value, peaks: Value) -> bool:
    """Whether products [B, V] or [B, 1, V] have a peak each: [B]."""
    if peaks.type.rank != 1 or products.type.rank not in (2, 3):
        return False
    first, *between = products.type.shape[:-1]
    return first.same(peaks.type.shape[0]) and all(d.value == 1 for d in between)


def _last(node: Node) -> Any:
    return cast(Value, node.inputs[0]).type.shape[-1]


def _embed_tokens(node: Node, uses: Uses) -> tuple[Node, Node] | None:
    """Rows of a table by one id a row, 0 where it is less, with rows of a table of positions added, if any are."""
    looked_up = _table(node)
    clamped = maker(looked_up[1], "maximum") if looked_up is not None else None
    if looked_up is None or clamped is None or clamped.inputs[1] != 0 or len(uses[id(looked_up[1])]) != 1:
        return None
    ids, last, more = clamped.inputs[0], node, cast(tuple[Any, Any], (None, None))
    added = only_use(node.outputs[0], uses, "add")
    other = None if added is None else _table(maker(added.inputs[added.inputs[0] is node.outputs[0]], "take"))
    if added is not None and other is not None and _each_alike(added):
        last, more = added, other
    return last, Node(
        "embed_tokens", (ids, looked_up[0], *more), {}, (last.outputs[0].type,), node.location, node.loops
    )


def _each_alike(added: Node) -> bool:
    """Whether two values that are added, and their sum, have one shape."""
    shapes = [cast(Value, x).type.shape for x in (*added.inputs, added.outputs[0])]
    return all(
        len(s) == len(shapes[0]) and all(a.same(b) for a, b in zip(s, shapes[0], strict=True)) for s in shapes
    )


def _table(node: Node | None) -> tuple[Value, Value] | None:
    """The table [N, D] and ids [B] of a look-up of one row for each: [B, 1, D]."""
    if node is None or node.op != "take" or node.attrs["axis"] != 0:
        return None
    table, place = node.inputs
    shaped = maker(place, "reshape")
    if not isinstance(table, Value) or table.type.rank != 2 or shaped is None:
        return None
    ids, column = shaped.inputs[0], shaped.outputs[0].type
    if not isinstance(ids, Value) or ids.type.rank != 1 or column.rank != 2 or column.shape[1].value != 1:
        return None
    return table, ids


_REWRITES = (
    ("take", _embed_tokens),
    ("peak", _peak_of_linear),
    ("linear", _norm_linear),
    ("linear", _linear_add),
)
"""Heads first: the norm before one is theirs."""
