"""Packing: projections of one input as one matrix product, whose result is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nest.ir.dim import Dim
from nest.ir.parammap import Concat, Expr, Source, Zeros
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.rewrite import parameter_of, replace_value, used_from_outside, uses_of_parameter
from nest.ir.program import BlockDef, Function, Node, Param, Value
from nest.ir.types import TensorType

__all__ = ["pack_projections"]

Functions = Sequence[Function]
Biases = dict[str, str | None]


def pack_projections(unit: BlockDef, everywhere: Functions) -> dict[str, Expr]:
    """Pack, in place, the weights of a flattened unit that all its functions apply to the same inputs.

    Functions share what is packed, so that weights are packed only where none is used without the others.

    Args:
        everywhere: the functions of the whole program.

    Returns:
        The packed parameters over those that they replace, by name.
    """
    functions = [f for f in everywhere if f.block is unit]
    shared = used_from_outside(everywhere)
    made: dict[str, Expr] = {}
    for weights in list(_groups(unit, functions, shared)):
        biases = _biases(functions, weights)
        if biases is not None and shared.isdisjoint(b for b in biases.values() if b):
            made |= _pack(unit, functions, weights, biases)
    return made


def _groups(unit: BlockDef, functions: Functions, shared: set[str]) -> Iterator[list[str]]:
    """Names of weights that are applied together wherever they are applied, in definition order."""
    alike: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name, param in unit.params.items():
        if param.type.rank == 2 and name not in shared:
            uses = list(uses_of_parameter(functions, name))
            if uses and all(node is not None and node.op == "linear" and at == 1 for _, node, at in uses):
                sites = tuple((id(f), id(node.inputs[0])) for f, node, _ in uses if node is not None)
                alike.setdefault(sites, []).append(name)
    yield from (names for names in alike.values() if len(names) > 1)


def _biases(functions: Functions, weights: Sequence[str]) -> Biases | None:
    """The bias of each weight, or None for it; nothing where a bias is not always that of its weight alone."""
    found: Biases = {}
    for weight in weights:
        names = {_bias(node) for _, node, _ in uses_of_parameter(functions, weight) if node is not None}
        if len(names) != 1 or "" in names:
            return None
        (name,) = names
        if name is not None:
            readers = [node for _, node, _ in uses_of_parameter(functions, name)]
            if not all(
                n is not None and n.op == "linear" and parameter_of(n.inputs[1]) == weight for n in readers
            ):
                return None
        found[weight] = name
    return found


def _bias(node: Node) -> str | None:
    """The name of the parameter that a `linear` adds; "" for a value that is none."""
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return None if bias is None else parameter_of(bias) or ""


def _pack(unit: BlockDef, functions: Functions, weights: Sequence[str], biases: Biases) -> dict[str, Expr]:
    parts = [unit.params[w] for w in weights]
    columns, dtype = parts[0].type.shape[1], parts[0].type.dtype
    sizes = [p.type.shape[0] for p in parts]
    total = sum(sizes[1:], start=sizes[0])
    name = _joined([w.removesuffix("_weight") for w in weights])
    while unit.params.keys() & {f"{name}_weight", f"{name}_bias"}:
        name += "_"
    packed = {f"{name}_weight": Param(TensorType((total, columns), dtype), parts[0].init)}
    made: dict[str, Expr] = {f"{name}_weight": Concat(tuple(map(Source, weights)), 0)}
    if any(biases.values()):
        packed[f"{name}_bias"] = Param(TensorType((total,), dtype), "zeros")
        pieces = zip(biases.values(), sizes, strict=True)
        made[f"{name}_bias"] = Concat(
            tuple(Source(b) if b else Zeros((int(size),), str(dtype.value)) for b, size in pieces), 0
        )
    gone = {*weights, *biases.values()}
    unit.params = {n: p for n, p in unit.params.items() if n not in gone} | packed
    for function in functions:
        _rewrite(function, weights, sizes, packed)
    return made


def _joined(names: Sequence[str]) -> str:
    """`self_attn_q_k_v_proj` for `self_attn_q_proj`, `self_attn_k_proj` and `self_attn_v_proj`."""
    words = [name.split("_") for name in names]
    start, end = _alike(words), _alike([w[::-1] for w in words])
    end = min(end, min(map(len, words)) - start)
    middle = [part for w in words for part in w[start : len(w) - end]]
    return "_".join([*words[0][:start], *middle, *words[0][len(words[0]) - end :]])


def _alike(lists: Sequence[Sequence[str]]) -> int:
    """How many first elements all lists have in common."""
    return next(
        (i for i, column in enumerate(zip(*lists, strict=False)) if len(set(column)) > 1),
        min(map(len, lists)),
    )


def _rewrite(
    function: Function, weights: Sequence[str], sizes: Sequence[Dim], packed: dict[str, Param]
) -> None:
    """One product in place of the first of each input's, and cuts of it in place of all."""
    made: dict[int, Value] = {}
    nodes: list[Node] = []
    swapped: list[tuple[Value, Value]] = []
    starts = [sum(sizes[1:i], start=sizes[0]) if i else Dim.constant(0) for i in range(len(sizes))]
    for node in function.nodes:
        name = parameter_of(node.inputs[1]) if node.op == "linear" else None
        if name not in weights:
            nodes.append(node)
            continue
        x, at = node.inputs[0], weights.index(str(name))
        if id(x) not in made:
            product = _product(node, packed)
            nodes += product
            made[id(x)] = product[-1].outputs[0]
        whole = made[id(x)]
        attrs = {"axis": whole.type.rank - 1, "start": starts[at], "stop": starts[at] + sizes[at], "step": 1}
        cut = Node("slice", (whole,), attrs, (node.outputs[0].type,), node.location, node.loops)
        nodes.append(cut)
        swapped.append((node.outputs[0], cut.outputs[0]))
    function.nodes = nodes
    for old, new in swapped:
        replace_value(function, old, new)
    eliminate_dead_code(function)


def _product(node: Node, packed: dict[str, Param]) -> list[Node]:
    """The packed parameters, and the `linear` over them in the place of one."""
    params = [
        Node("param", (), {"path": (n,)}, (p.type,), node.location, node.loops) for n, p in packed.items()
    ]
    size = next(iter(packed.values())).type.shape[0]
    out = node.outputs[0].type
    operands = (node.inputs[0], *(p.outputs[0] for p in params), *([None] if len(params) == 1 else []))
    type_ = TensorType((*out.shape[:-1], size), out.dtype)
    return [*params, Node("linear", operands, {}, (type_,), node.location, node.loops)]
