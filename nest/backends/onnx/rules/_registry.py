"""Where rules are kept, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from nest.backends.onnx.dims import Dims
from nest.backends.onnx.graph import Graph, Tensor, Type
from nest.ir.dim import Dim

__all__ = ["RULES", "Lowering", "Number", "Operand", "rule", "wide_dtype"]

Number = bool | int | float | Dim
Operand = Tensor | bool | int | float | Dim
Result = ir.Value | tuple[ir.Value, ...]

RULES: dict[str, Callable[..., Result]] = {}


class Lowering:
    """What a rule works with: the graph, its sizes, and the type that the op's result has.

    Attributes:
        out: the type of the (first) result.
    """

    def __init__(self, graph: Graph, dims: Dims, out: Type) -> None:
        self.graph = graph
        self.dims = dims
        self.out = out
        self.op = graph.op
        self.constant = graph.constant
        self.integers = graph.integers

    def value(self, x: Operand, dtype: str) -> ir.Value:
        """A tensor's value, or a number as a tensor of rank 0."""
        if isinstance(x, Tensor):
            return x.value
        return self.dims.scalar(x, dtype) if isinstance(x, Dim) else self.constant(x, dtype)

    def wide(self, x: Tensor) -> ir.Value:
        """Floats in the type that sums are made in: f32 at least."""
        return self.graph.cast(x, "f32") if x.dtype in ("f16", "bf16") else x.value

    def narrow(self, x: ir.Value, dtype: str) -> ir.Value:
        """What was computed by `wide`, in the op's own type."""
        return self.graph.cast(x, dtype) if dtype in ("f16", "bf16") else x

    def reduce(self, op: str, x: ir.Value, axes: Sequence[int], *, keepdims: bool) -> ir.Value:
        """A reduction over axes, which are an input of the op since opset 18, for ReduceSum since 13."""
        if op == "ReduceSum" or self.graph.opset >= 18:
            return self.op(op, x, self.integers(*axes), keepdims=keepdims)
        return self.op(op, x, axes=tuple(axes), keepdims=keepdims)

    def unsqueeze(self, x: ir.Value, *axes: int) -> ir.Value:
        return self.op("Unsqueeze", x, self.integers(*axes))


def wide_dtype(dtype: str) -> str:
    """The type that `Lowering.wide` gives."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def rule(function: Callable[..., Result]) -> Callable[..., Result]:
    """Register a rule under its function's name; an underscore at the end keeps a builtin's name free."""
    RULES[function.__name__.rstrip("_")] = function
    return function
