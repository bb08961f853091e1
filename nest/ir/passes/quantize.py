"""Quantized weights: products with matrices of 8 or 4 bits in place of products with matrices of floats.

`linear(x, weight, bias)` becomes `quantized_linear(x, values, scales, bias)`, which means the same as the product with

- 8 bits, one scale for each output: `weight[o, i] = values[i, o] * scales[o]`, values i8 [In, Out], scales f32 [Out];
- 4 bits, one scale for each group of 32 inputs of an output: `weight[o, 32 g + i] = (n - 8) * scales[o, g]`, where n is
  element i of the group's nibbles; values u8 [Out, In / 32, 16], two a byte, the first in its lower half; scales f32
  [Out, In / 32].

Norms, biases, convolutions, and embeddings, which are looked up, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nest.errors import CallError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.flatten import flatten
from nest.ir.passes.rewrite import replace_value, used_from_outside, uses_of_parameter
from nest.ir.program import BlockDef, Function, Node, Param, Path, Program, path_text
from nest.ir.types import TensorType

__all__ = ["GROUP", "HEAD", "LEAST", "SCHEMES", "QuantizedMatrix", "QuantizedProgram", "parts_of", "quantize"]

SCHEMES: dict[str, int] = {"int8": 8, "int4": 4}
"""What a matrix can be quantized to, with the bits of a weight."""
GROUP = 32
"""Inputs that share a scale in `int4`."""
LEAST = 32
"""A matrix with fewer rows or columns stays as it is: there is nothing to gain."""
HEAD = "head"
"""The part of matrices that give a score for each of many tokens."""
_TALL = 8
"""What has so many times more rows than columns is such a matrix."""

Choice = Callable[[str], str | None]


@dataclass(frozen=True)
class QuantizedMatrix:
    """One matrix that a program has quantized.

    Attributes:
        source: the definition path of the matrix, float [Out, In].
        part: of the definition, see `parts_of`.
        scheme: one of `SCHEMES`.
    """

    source: str
    part: str
    scheme: str


@dataclass(frozen=True)
class QuantizedProgram:
    """A program over quantized weights.

    Attributes:
        program: with the entries and states of the definition, and parameters of its own.
        kept: its parameters that are the definition's, each with its definition path.
        matrices: the stem of the others, `STEM_values` and `STEM_scales`, with what they are made of.
    """

    program: Program
    kept: dict[str, str]
    matrices: dict[str, QuantizedMatrix]


def quantize(program: Program, asked: str | Mapping[str, str | None]) -> QuantizedProgram:
    """The program with its matrices quantized.

    Args:
        asked: a scheme for every part but the head, or a scheme, or None, for parts by name. Parts that are not named
            stay as they are.

    Raises:
        CallError: there is no such scheme or part, or nothing that could be quantized so.
    """
    flat, paths = flatten(program)
    pass_ = _Pass(flat, paths)
    return pass_.run(_choice(program.name, asked, pass_.parts()))


def parts_of(program: Program) -> tuple[str, ...]:
    """The parts of a definition that have matrices to quantize, in definition order.

    A part is the first name of a matrix's definition path, without `_layers` behind it: `encoder` has the matrices of
    `encoder_layers.0.mlp.fc1`. What is much taller than wide, or below something called head, is of the part `head`.
    """
    return _Pass(*flatten(program)).parts()


def _choice(name: str, asked: str | Mapping[str, str | None], parts: Sequence[str]) -> dict[str, str]:
    """The scheme of each part that gets one."""
    known = " or ".join(f"'{s}'" for s in SCHEMES)
    if not isinstance(asked, str | Mapping):
        raise CallError(f"quantize= is {known}, None, or a mapping of parts to these; {asked!r} was given.")
    if not parts:
        raise CallError(
            f"{name} has no matrix of {LEAST} x {LEAST} or more to quantize: leave quantize= out."
        )
    given = asked if isinstance(asked, Mapping) else {p: asked for p in parts if p != HEAD} or {HEAD: asked}
    if HEAD not in parts and given.get(HEAD) is not None:
        raise CallError(
            f"{name} has no head of its own to quantize: what gives scores is its embedding too, or there is none. "
            f"Leave the part '{HEAD}' out, or give it None; the other parts: {', '.join(parts)}."
        )
    if unknown := [p for p in given if p not in (*parts, HEAD)]:
        raise CallError(
            f"quantize= names the part '{unknown[0]}', which {name} does not have; its parts: {', '.join(parts)}."
        )
    if wrong := [s for s in given.values() if s is not None and s not in SCHEMES]:
        raise CallError(f"quantize= is {known}, or None for what stays as it is; {wrong[0]!r} was given.")
    return {part: scheme for part, scheme in given.items() if scheme is not None}


class _Pass:
    """The pass over one flattened program, in place."""

    def __init__(self, flat: Program, paths: Mapping[str, str]) -> None:
        self.flat = flat
        self.paths = paths
        self.functions = flat.functions()
        self.units = _units(flat.root)
        self.shared = used_from_outside(self.functions)

    def parts(self) -> tuple[str, ...]:
        found = {
            path_text((*place, name)): self._part(place, name, unit)
            for unit, places in self.units
            for name in self._matrices(unit)
            for place in places
        }
        return tuple(dict.fromkeys(found[path] for path in self.paths if path in found))

    def run(self, chosen: Mapping[str, str]) -> QuantizedProgram:
        made: dict[str, QuantizedMatrix] = {}
        for unit, places in self.units:
            for name in self._matrices(unit):
                of = {place: self._part(place, name, unit) for place in places}
                schemes = {chosen.get(part) for part in of.values()}
                if len(schemes) > 1:
                    raise CallError(
                        f"The parts {', '.join(dict.fromkeys(of.values()))} of {self.flat.name} are made of the same "
                        f"block, so quantize= gives them the same scheme or none."
                    )
                scheme = schemes.pop()
                if scheme is None or not _fits(unit.params[name], scheme):
                    continue
                stem = _quantize(unit, self.functions, name, scheme)
                for place, part in of.items():
                    source = self.paths[path_text((*place, name))]
                    made[path_text((*place, stem))] = QuantizedMatrix(source, part, scheme)
        if empty := [part for part in chosen if part not in {m.part for m in made.values()}]:
            raise CallError(
                f"The part '{empty[0]}' of {self.flat.name} has no matrix for int4, whose rows are whole groups of "
                f"{GROUP}: give it 'int8', or None."
            )
        for function in self.functions:
            eliminate_dead_code(function)
        gone = {matrix.source for matrix in made.values()}
        kept = {path: source for path, source in self.paths.items() if source not in gone}
        return QuantizedProgram(self.flat, kept, made)

    def _matrices(self, unit: BlockDef) -> list[str]:
        """Names of the parameters that products read, and nothing else does."""
        functions = [f for f in self.functions if f.block is unit]
        found = []
        for name, param in unit.params.items():
            if param.type.rank != 2 or name in self.shared or not _large(param):
                continue
            uses = list(uses_of_parameter(functions, name))
            if uses and all(node is not None and node.op == "linear" and at == 1 for _, node, at in uses):
                found.append(name)
        return found

    def _part(self, place: Path, name: str, unit: BlockDef) -> str:
        first = self.paths[path_text((*place, name))].partition(".")[0]
        rows, columns = (int(d) for d in unit.params[name].type.shape)
        return HEAD if rows >= _TALL * columns else first.removesuffix("_layers") or first


def _units(root: BlockDef) -> list[tuple[BlockDef, list[Path]]]:
    """Every unit with the paths at which it stands."""
    found: dict[int, tuple[BlockDef, list[Path]]] = {}

    def visit(block: BlockDef, path: Path) -> None:
        found.setdefault(block.key, (block, []))[1].append(path)
        for relative, use in block.uses():
            visit(use.block, (*path, *relative))

    visit(root, ())
    return list(found.values())


def _large(param: Param) -> bool:
    return all(int(d) >= LEAST for d in param.type.shape)


def _fits(param: Param, scheme: str) -> bool:
    return scheme == "int8" or int(param.type.shape[1]) % GROUP == 0


def _quantize(unit: BlockDef, functions: Sequence[Function], name: str, scheme: str) -> str:
    """Put a matrix's quantized parts in its place; the stem of their names."""
    stem = name.removesuffix("_weight").removesuffix(".weight")
    while unit.params.keys() & {f"{stem}_values", f"{stem}_scales"}:
        stem += "_"
    types = _types(unit.params[name], scheme)
    unit.params = {n: p for n, p in unit.params.items() if n != name} | {
        f"{stem}_{part}": Param(type_, "zeros", trainable=False) for part, type_ in types.items()
    }
    for function in functions:
        if function.block is unit:
            _rewrite(function, name, {f"{stem}_{part}": type_ for part, type_ in types.items()})
    return stem


def _types(param: Param, scheme: str) -> dict[str, TensorType]:
    out, width = param.type.shape
    if scheme == "int8":
        values, scales = TensorType((width, out), DType.of("i8")), (out,)
        return {"values": values, "scales": TensorType(scales, DType.of("f32"))}
    groups = Dim.constant(int(width) // GROUP)
    packed = TensorType((out, groups, Dim.constant(GROUP // 2)), DType.of("u8"))
    return {"values": packed, "scales": TensorType((out, groups), DType.of("f32"))}


def _rewrite(function: Function, name: str, types: Mapping[str, TensorType]) -> None:
    products = [node for _, node, _ in uses_of_parameter([function], name) if node is not None]
    if not products:
        return
    stored = [Node("param", (), {"path": (n,)}, (t,), products[0].location) for n, t in types.items()]
    function.nodes[:0] = stored
    values, scales = (node.outputs[0] for node in stored)
    for node in products:
        inputs = (node.inputs[0], values, scales, node.inputs[2])
        made = Node("quantized_linear", inputs, {}, (node.outputs[0].type,), node.location, node.loops)
        function.nodes[function.nodes.index(node)] = made
        replace_value(function, node.outputs[0], made.outputs[0])
