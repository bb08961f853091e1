"""Reductions, and ops along one axis. Floats are summed in f32 at least; integers in their own type."""

from __future__ import annotations

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor
from nest.backends.onnx.rules._registry import Lowering, rule, wide_dtype

__all__ = ["largest_of"]

Axes = tuple[int, ...]


def _reduce(
    low: Lowering, op: str, x: Tensor, axes: Axes, keepdims: bool, through: str | None = None
) -> ir.Value:
    """A reduction computed in the type `through`, by default the one that sums are made in."""
    dtype = through or wide_dtype(x.dtype)
    if not axes:
        return x.value
    value = low.graph.cast(x, dtype)
    result = low.reduce(op, value, axes, keepdims=keepdims)
    return result if dtype == x.dtype else low.graph.cast(result, x.dtype)


@rule
def sum_(low: Lowering, x: Tensor, *, axes: Axes, keepdims: bool) -> ir.Value:
    through = "i32" if x.dtype in ("bool", "i16", "i8", "u8") else None
    return _reduce(low, "ReduceSum", x, axes, keepdims, through)


@rule
def mean(low: Lowering, x: Tensor, *, axes: Axes, keepdims: bool) -> ir.Value:
    return _reduce(low, "ReduceMean", x, axes, keepdims)


@rule
def max_(low: Lowering, x: Tensor, *, axes: Axes, keepdims: bool) -> ir.Value:
    return _reduce(low, "ReduceMax", x, axes, keepdims, "i32" if x.dtype == "i16" else None)


@rule
def min_(low: Lowering, x: Tensor, *, axes: Axes, keepdims: bool) -> ir.Value:
    return _reduce(low, "ReduceMin", x, axes, keepdims, "i32" if x.dtype == "i16" else None)


@rule
def any_(low: Lowering, x: Tensor, *, axes: Axes, keepdims: bool) -> ir.Value:
    # Bools are reduced since opset 20.
    return _reduce(low, "ReduceMax", x, axes, keepdims, "i32" if low.graph.opset < 20 else None)


@rule
def logsumexp(low: Lowering, x: Tensor, *, axes: Axes, keepdims: bool) -> ir.Value:
    return _reduce(low, "ReduceLogSumExp", x, axes, keepdims)


@rule
def argmax(low: Lowering, x: Tensor, *, axis: int) -> ir.Value:
    value = low.graph.cast(x, "i32") if x.dtype in ("i64", "i16", "bool") else low.wide(x)
    return low.graph.cast(low.op("ArgMax", value, axis=axis, keepdims=0), "i32")


@rule
def softmax(low: Lowering, x: Tensor, *, axis: int) -> ir.Value:
    return low.narrow(low.op("Softmax", low.wide(x), axis=axis), x.dtype)


@rule
def cumsum(low: Lowering, x: Tensor, *, axis: int) -> ir.Value:
    dtype = "i32" if x.dtype in ("i16", "i8", "u8") else wide_dtype(x.dtype)
    total = low.op("CumSum", low.graph.cast(x, dtype), low.constant(axis, "i32"))
    return total if dtype == x.dtype else low.graph.cast(total, x.dtype)


@rule
def peak(low: Lowering, x: Tensor, bias: Tensor | None) -> tuple[ir.Value, ...]:
    return largest_of(low, x, bias)


def largest_of(low: Lowering, x: Tensor, bias: Tensor | None) -> tuple[ir.Value, ir.Value, ir.Value]:
    """What `peak` gives."""
    y = low.wide(x) if bias is None else low.op("Add", low.wide(x), low.wide(bias))
    place = low.graph.cast(low.op("ArgMax", y, axis=-1, keepdims=0), "i32")
    largest = low.reduce("ReduceMax", y, [-1], keepdims=True)
    mass = low.reduce("ReduceSum", low.op("Exp", low.op("Sub", y, largest)), [-1], keepdims=False)
    flat = low.op("Squeeze", largest, low.integers(-1))
    return place, low.narrow(flat, x.dtype), low.narrow(mass, x.dtype)


@rule
def top_k(low: Lowering, x: Tensor, *, k: int) -> tuple[ir.Value, ir.Value]:
    values, indices = low.graph.ops("TopK", 2, low.wide(x), low.integers(k), axis=-1, largest=1, sorted=1)
    return low.narrow(values, x.dtype), low.graph.cast(indices, "i32")
