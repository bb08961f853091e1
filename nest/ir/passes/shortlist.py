"""Short lists: the largest of a head's products found among a few, without computing every one exactly.

`peak(linear(x, head), bias)` becomes `peak_of_product`: all products by weights of 8 bits, the likeliest of them again
in full, and a bound that says whether any other could be larger, in which case all are. The result is that of the full
product, but for the tail of the sum.

What else is taken of the products, `take(linear(x, head), ids)`, becomes a product with the rows that are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.parammap import Expr, Quantized, Source, TensorSpec
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.rewrite import parameter_of, replace_value, used_from_outside, uses_of_parameter
from nest.ir.program import BlockDef, Function, Node, Param, Value
from nest.ir.types import TensorType

__all__ = ["shortlist"]

_WIDE = 8
"""What has so many times more rows than columns is a head; elsewhere there is nothing to gain."""

PARTS = ("values", "columns", "scales", "offsets", "lengths")
"""Of a head in 8 bits, in the order in which `peak_of_product` takes them."""

_ALONE = frozenset({"reshape", "cast"})
"""Ops between a product and what looks at it."""


def shortlist(unit: BlockDef, everywhere: Sequence[Function]) -> dict[str, Expr]:
    """Let the loops over a flattened unit find the largest product of a head by a short list, in place.

    Args:
        everywhere: the functions of the whole program.

    Returns:
        The parameters that it needs, over those that there are, by name.
    """
    shared, made = used_from_outside(everywhere), dict[str, Expr]()
    for function in everywhere:
        if function.block is not unit:
            continue
        for node in [n for n in function.nodes if n.op == "linear"]:
            name = parameter_of(node.inputs[1])
            if name is None or name in shared or node.inputs[2] is not None:
                continue
            uses = _uses(node.outputs[0], function)
            if uses and _is_head(unit.params[name]):
                made |= _parameters(unit, name)
                _rewrite(function, node, name, unit, uses)
    for name in [n for n in made if n in unit.params and f"{_stem(n)}_rows" in made]:
        for function in everywhere:
            if function.block is unit:
                _look_up_rows(function, name, unit)
    return made


def _look_up_rows(function: Function, name: str, unit: BlockDef) -> None:
    """Let what looks up rows of a head, as an embedding does, read it by rows, where no product reads the head."""
    uses = [(n, at) for _, n, at in uses_of_parameter([function], name)]
    picks = [n for n, at in uses if n is not None and n.op == "take" and at == 0 and n.attrs["axis"] == 0]
    if picks and len(picks) == len(uses):
        rows = f"{_stem(name)}_rows"
        stored = Node("param", (), {"path": (rows,)}, (unit.params[rows].type,), picks[0].location)
        function.nodes.insert(0, stored)
        for pick in picks:
            pick.inputs = (stored.outputs[0], *pick.inputs[1:])
        eliminate_dead_code(function)


def _is_head(param: Param) -> bool:
    rows, columns = (int(d) for d in param.type.shape)
    return str(param.type.dtype.value) == "f32" and rows >= _WIDE * columns


def _uses(value: Value, function: Function) -> list[Node]:
    """What looks at products: largest ones and picks along the last axis; none where anything else does."""
    found: list[Node] = []
    if any(r is value for r in function.results):
        return []
    for node in function.nodes:
        if not any(x is value for x in node.inputs):
            continue
        if node.op in _ALONE and node.outputs[0].type.shape[-1].same(value.type.shape[-1]):
            inner = _uses(node.outputs[0], function)
            if not inner:
                return []
            found += inner
        elif node.inputs[0] is value and _looks(node, value.type.rank - 1):
            found.append(node)
        else:
            return []
    return found


def _looks(node: Node, last: int) -> bool:
    """Whether a node finds the largest of its first operand, or picks along its last axis."""
    return node.op == "peak" or (node.op == "take" and node.attrs["axis"] == last)


def _stem(name: str) -> str:
    return f"{name.removesuffix('_weight')}_short"


def _parameters(unit: BlockDef, name: str) -> dict[str, Expr]:
    """The head as it is, by rows, and in 8 bits; what is there already is made no second time."""
    if f"{_stem(name)}_rows" in unit.params:
        return {}
    shape = unit.params[name].type.shape
    spec = TensorSpec((int(shape[0]), int(shape[1])), "f32")
    stem, given = _stem(name), Source(name)
    # What looks up single rows keeps them by rows, whatever a later pass makes of the head.
    made: dict[str, Expr] = {name: given, f"{stem}_rows": given}
    types = {f"{stem}_rows": unit.params[name].type}
    for part in PARTS:
        made[f"{stem}_{part}"] = part_of = Quantized(given, part)
        of = part_of.infer({name: spec})
        types[f"{stem}_{part}"] = TensorType([Dim.constant(d) for d in of.shape], DType.of(of.dtype))
    unit.params = {**unit.params, **{n: Param(t, trainable=False) for n, t in types.items()}}
    return made


def _rewrite(function: Function, product: Node, name: str, unit: BlockDef, uses: Sequence[Node]) -> None:
    x, stem = cast(Value, product.inputs[0]), _stem(name)
    stored = []
    for part in ("rows", *PARTS):
        type_ = unit.params[f"{stem}_{part}"].type
        stored.append(Node("param", (), {"path": (f"{stem}_{part}",)}, (type_,), product.location))
    function.nodes[:0] = stored
    head, *rest = (node.outputs[0] for node in stored)
    for node in uses:
        at = function.nodes.index(node)
        if node.op == "peak":
            types = tuple(v.type for v in node.outputs)
            bias = [] if node.inputs[1] is not None else [_zeros(node)]
            inputs = (x, head, *rest, bias[0].outputs[0] if bias else node.inputs[1])
            made = [*bias, Node("peak_of_product", inputs, {}, types, node.location, node.loops)]
        else:
            made = _taken(node, x, head)
        function.nodes[at : at + 1] = made
        for old, new in zip(node.outputs, made[-1].outputs, strict=True):
            replace_value(function, old, new)
    eliminate_dead_code(function)


def _zeros(node: Node) -> Node:
    """A bias of nothing for each product that a node looks at."""
    type_ = cast(Value, node.inputs[0]).type
    shape = (type_.shape[-1],)
    return Node(
        "full", (0.0,), {"shape": shape}, (TensorType(shape, type_.dtype),), node.location, node.loops
    )


def _taken(node: Node, x: Value, head: Value) -> list[Node]:
    """The products with some rows of the head, in the shape that taking them of all gives."""
    ids, out = cast(Value, node.inputs[1]), node.outputs[0].type
    rows = Node(
        "take", (head, ids), {"axis": 0}, (TensorType((*ids.type.shape, head.type.shape[1]), head.type.dtype),),
        node.location, node.loops,
    )  # fmt: skip
    type_ = TensorType((*x.type.shape[:-1], *ids.type.shape), out.dtype)
    some = Node("linear", (x, rows.outputs[0], None), {}, (type_,), node.location, node.loops)
    shaped = Node("reshape", (some.outputs[0],), {"shape": out.shape}, (out,), node.location, node.loops)
    return [rows, some, shaped]
