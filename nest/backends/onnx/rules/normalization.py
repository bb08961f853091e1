"""Normalizations: computed in f32 at least, given back in the tensor's type."""

from __future__ import annotations

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor
from nest.backends.onnx.rules._registry import Lowering, rule, wide_dtype
from nest.ir.dim import Dim

__all__: list[str] = []


@rule
def layer_norm(
    low: Lowering, x: Tensor, weight: Tensor | None, bias: Tensor | None, *, eps: float
) -> ir.Value:
    scale = _ones(low, x) if weight is None else low.wide(weight)
    shift = None if bias is None else low.wide(bias)
    return low.narrow(low.op("LayerNormalization", low.wide(x), scale, shift, axis=-1, epsilon=eps), x.dtype)


@rule
def rms_norm(low: Lowering, x: Tensor, weight: Tensor | None, *, eps: float) -> ir.Value:
    scale = _ones(low, x) if weight is None else low.wide(weight)
    y = low.wide(x)
    if low.graph.opset >= 23:
        return low.narrow(low.op("RMSNormalization", y, scale, axis=-1, epsilon=eps), x.dtype)
    mean = low.reduce("ReduceMean", low.op("Mul", y, y), (-1,), keepdims=True)
    root = low.op("Sqrt", low.op("Add", mean, low.constant(eps, wide_dtype(x.dtype))))
    return low.narrow(low.op("Mul", low.op("Div", y, root), scale), x.dtype)


def _ones(low: Lowering, x: Tensor) -> ir.Value:
    """A weight that changes nothing, over the last axis."""
    return low.op("Expand", low.constant([1.0], wide_dtype(x.dtype)), low.dims.size(x.shape[-1]))


@rule
def group_norm(
    low: Lowering, x: Tensor, weight: Tensor, bias: Tensor, *, groups: int, eps: float
) -> ir.Value:
    """Each group of channels is one instance of InstanceNormalization; weights are by channel, so they follow."""
    rest = Dim.constant(1)
    for dim in x.shape[2:]:
        rest = rest * dim
    grouped = (x.shape[0], Dim.constant(groups), x.shape[1] // groups * rest)
    dtype = wide_dtype(x.dtype)
    ones, zeros = (low.constant([n] * groups, dtype) for n in (1.0, 0.0))
    flat = low.dims.reshape(low.wide(x), x.shape, grouped)
    y = low.dims.reshape(low.op("InstanceNormalization", flat, ones, zeros, epsilon=eps), grouped, x.shape)
    scaled = low.op("Mul", y, _by_channel(low, weight, x.rank))
    return low.narrow(low.op("Add", scaled, _by_channel(low, bias, x.rank)), x.dtype)


def _by_channel(low: Lowering, parameter: Tensor, rank: int) -> ir.Value:
    """A parameter [C] against x [B, C, ...]."""
    value = low.wide(parameter)
    return value if rank == 2 else low.unsqueeze(value, *range(1, rank - 1))


@rule
def batch_norm(
    low: Lowering, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor, *, eps: float
) -> ir.Value:
    parameters = (weight, bias, mean, variance)
    return low.narrow(
        low.op("BatchNormalization", low.wide(x), *map(low.wide, parameters), epsilon=eps), x.dtype
    )
