"""Matrix products and convolutions."""

from __future__ import annotations

import math

import numpy as np

from nest.backends.reference.rules._registry import Array, rule, wide

__all__: list[str] = []


@rule
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    y = wide(x) @ wide(weight).T
    return (y if bias is None else y + bias).astype(x.dtype)


@rule
def quantized_linear(x: Array, values: Array, scales: Array, bias: Array | None) -> Array:
    """See `nest.ir.passes.quantize` for what the two parts of a weight are."""
    # In f64 where x is, so that the oracle is one for these weights too.
    scale = scales.astype(wide(x).dtype)
    if values.ndim == 2:
        weight = (values * scale).T
    else:
        nibbles = np.stack([values & 15, values >> 4], -1).astype(np.int8) - 8
        weight = (nibbles.reshape(*scales.shape, -1) * scale[..., None]).reshape(len(values), -1)
    y: Array = linear(x, weight, bias)
    return y


@rule
def expert_linear(x: Array, weight: Array, experts: Array) -> Array:
    result = np.empty((x.shape[0], weight.shape[1]), x.dtype)
    for expert in np.unique(experts):
        rows = experts == expert
        result[rows] = wide(x[rows]) @ wide(weight[expert]).T
    return result


@rule
def einsum(*operands: Array, equation: str) -> Array:
    result: Array = np.einsum(equation, *map(wide, operands), optimize=True)
    return result.astype(operands[0].dtype)


@rule
def conv(
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    groups: int,
) -> Array:
    kernel = weight.shape[2:]
    windows = _windows(np.pad(wide(x), [(0, 0), (0, 0), *((p, p) for p in padding)]), kernel, stride)
    batch, channels = x.shape[:2]
    places = windows.shape[2 : 2 + len(kernel)]
    # [B, Cin, *places, *kernel] to one matrix of patches a group.
    split = windows.reshape(batch, groups, channels // groups, math.prod(places), math.prod(kernel))
    # No -1: it is ambiguous where the batch is empty.
    width = channels // groups * math.prod(kernel)
    patches = split.transpose(0, 1, 3, 2, 4).reshape(batch, groups, math.prod(places), width)
    filters = wide(weight).reshape(groups, weight.shape[0] // groups, -1)
    y: Array = np.matmul(filters, patches.swapaxes(2, 3)).reshape(batch, weight.shape[0], *places)
    if bias is not None:
        y = y + bias.reshape(-1, *[1] * len(places))
    return y.astype(x.dtype)


@rule
def max_pool(x: Array, *, kernel: int, stride: int, padding: int) -> Array:
    sides = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    padded = np.pad(x, sides, constant_values=-np.inf)
    result: Array = _windows(padded, (kernel, kernel), (stride, stride)).max(axis=(4, 5))
    return result


def _windows(x: Array, kernel: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """x [B, C, *spatial] as a view [B, C, *places, *kernel]."""
    axes = tuple(range(2, 2 + len(kernel)))
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=axes)
    return view[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]
