"""Ops that pick elements by index, and write them."""

from __future__ import annotations

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor
from nest.backends.onnx.rules._registry import Lowering, rule

__all__: list[str] = []


@rule
def take(low: Lowering, x: Tensor, indices: Tensor, *, axis: int) -> ir.Value:
    return low.op("Gather", x, _index(low, indices), axis=axis)


@rule
def take_along(low: Lowering, x: Tensor, indices: Tensor, *, axis: int) -> ir.Value:
    """GatherElements does not broadcast: an axis of 1 is stretched first."""
    where = _index(low, indices)
    shape = low.out.shape
    if not all(have.same(want) for have, want in zip(indices.shape, shape, strict=True)):
        where = low.op("Expand", where, low.dims.shape(shape))
    return low.op("GatherElements", x, where, axis=axis)


@rule
def scatter_set(low: Lowering, x: Tensor, indices: Tensor, updates: Tensor, *, axis: int) -> ir.Value:
    return low.op("ScatterElements", x, _index(low, indices), updates, axis=axis)


def _index(low: Lowering, indices: Tensor) -> ir.Value:
    """Indices in a type that ONNX takes."""
    return indices.value if indices.dtype in ("i32", "i64") else low.graph.cast(indices, "i32")
