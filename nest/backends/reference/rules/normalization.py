"""Normalizations: computed in f32 at least, given back in the tensor's type."""

from __future__ import annotations

import math

import numpy as np

from nest.backends.reference.rules._registry import Array, rule, wide

__all__: list[str] = []


def _standardized(y: Array, axes: tuple[int, ...], eps: float) -> Array:
    """(y - mean) / sqrt(variance + eps) over axes; the variance is biased."""
    centred = y - y.mean(axis=axes, keepdims=True)
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    result: Array = centred / np.sqrt(variance + y.dtype.type(eps))
    return result


def _affine(y: Array, weight: Array | None, bias: Array | None) -> Array:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _by_channel(parameter: Array, rank: int) -> Array:
    """A parameter [C] against x [B, C, ...]."""
    return wide(parameter).reshape(-1, *[1] * (rank - 2))


@rule
def layer_norm(x: Array, weight: Array | None, bias: Array | None, *, eps: float) -> Array:
    return _affine(_standardized(wide(x), (-1,), eps), weight, bias).astype(x.dtype)


@rule
def rms_norm(x: Array, weight: Array | None, *, eps: float) -> Array:
    y = wide(x)
    y = y / np.sqrt(np.square(y).mean(axis=-1, keepdims=True) + y.dtype.type(eps))
    return _affine(y, weight, None).astype(x.dtype)


@rule
def group_norm(x: Array, weight: Array, bias: Array, *, groups: int, eps: float) -> Array:
    grouped = wide(x).reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    y = _standardized(grouped, (-1,), eps).reshape(x.shape)
    return _affine(y, _by_channel(weight, x.ndim), _by_channel(bias, x.ndim)).astype(x.dtype)


@rule
def batch_norm(x: Array, mean: Array, variance: Array, weight: Array, bias: Array, *, eps: float) -> Array:
    shift, spread, scale, offset = (_by_channel(p, x.ndim) for p in (mean, variance, weight, bias))
    y = (wide(x) - shift) / np.sqrt(spread + spread.dtype.type(eps))
    return _affine(y, scale, offset).astype(x.dtype)
