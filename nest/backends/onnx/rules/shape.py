"""Ops that move elements without changing them, and ops that make tensors from sizes."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor
from nest.backends.onnx.rules._registry import Lowering, Number, rule
from nest.ir.dim import Dim

__all__: list[str] = []


@rule
def reshape(low: Lowering, x: Tensor, *, shape: tuple[Dim, ...]) -> ir.Value:
    return low.dims.reshape(x.value, x.shape, shape)


@rule
def permute(low: Lowering, x: Tensor, *, axes: tuple[int, ...]) -> ir.Value:
    """Where axes of one element alone move, no element does: that is a reshape, which runtimes give for nothing."""
    moving = [a for a in axes if x.shape[a].value != 1]
    if moving == sorted(moving):
        return low.dims.reshape(x.value, x.shape, [x.shape[a] for a in axes])
    return low.graph.transpose(x, axes)


@rule
def concat(low: Lowering, *tensors: Tensor, axis: int) -> ir.Value:
    return low.op("Concat", *tensors, axis=axis)


@rule
def slice_(low: Lowering, x: Tensor, *, axis: int, start: Dim, stop: Dim, step: int) -> ir.Value:
    first, last = low.dims.size(start), low.dims.size(stop)
    return low.op("Slice", x, first, last, low.integers(axis), low.integers(step))


@rule
def pad(low: Lowering, x: Tensor, *, axis: int, before: Dim, after: Dim, value: float) -> ir.Value:
    fill = low.constant(value, x.dtype)
    if low.graph.opset >= 18:
        return low.op("Pad", x, low.dims.shape((before, after)), fill, low.integers(axis))
    none, rest = [Dim.constant(0)] * axis, [Dim.constant(0)] * (x.rank - axis - 1)
    return low.op("Pad", x, low.dims.shape((*none, before, *rest, *none, after, *rest)), fill)


@rule
def broadcast_to(low: Lowering, x: Tensor, *, shape: tuple[Dim, ...]) -> ir.Value:
    return low.op("Expand", x, low.dims.shape(shape))


@rule
def iota(low: Lowering, *, size: Dim) -> ir.Value:
    dtype = low.out.dtype
    count = dtype if dtype in ("i32", "i64", "f32", "f64") else "i32"
    numbers = [low.constant(n, count) for n in (0, 1)]
    return_value = low.op("Range", numbers[0], low.dims.scalar(size, count), numbers[1])
    return return_value if count == dtype else low.graph.cast(return_value, dtype)


@rule
def full(low: Lowering, value: Number, *, shape: tuple[Dim, ...]) -> ir.Value:
    element = low.value(value, low.out.dtype)
    return low.op("Expand", element, low.dims.shape(shape)) if shape else element


@rule
def constant(low: Lowering, *, values: Any) -> ir.Value:
    return low.constant(values, low.out.dtype)
