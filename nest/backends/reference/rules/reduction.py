"""Reductions, and ops along one axis. Floats are summed in f32 at least; integers in their own type."""

from __future__ import annotations

import numpy as np

from nest.backends.reference.rules._registry import Array, rule, wide

__all__: list[str] = []

Axes = tuple[int, ...]


@rule
def sum_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    y = wide(x)
    total: Array = np.asarray(y.sum(axis=axes, keepdims=keepdims, dtype=y.dtype))
    return total.astype(x.dtype)


@rule
def mean(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return np.asarray(wide(x).mean(axis=axes, keepdims=keepdims)).astype(x.dtype)


@rule
def max_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return np.asarray(x.max(axis=axes, keepdims=keepdims))


@rule
def min_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return np.asarray(x.min(axis=axes, keepdims=keepdims))


@rule
def any_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return np.asarray(x.any(axis=axes, keepdims=keepdims))


@rule
def logsumexp(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    y = wide(x)
    peak = y.max(axis=axes, keepdims=True)
    # An infinite peak is taken as 0: less itself it would be NaN, where the sum is 0 or infinite.
    peak = np.where(np.isinf(peak), np.zeros((), y.dtype), peak)
    total = np.log(np.exp(y - peak).sum(axis=axes, keepdims=True)) + peak
    return np.asarray(total if keepdims else total.squeeze(axes)).astype(x.dtype)


@rule
def argmax(x: Array, *, axis: int) -> Array:
    return np.asarray(x.argmax(axis=axis)).astype(np.int32)


@rule
def softmax(x: Array, *, axis: int) -> Array:
    y = wide(x)
    powers = np.exp(y - y.max(axis=axis, keepdims=True))
    result: Array = powers / powers.sum(axis=axis, keepdims=True)
    return result.astype(x.dtype)


@rule
def cumsum(x: Array, *, axis: int) -> Array:
    y = wide(x)
    return y.cumsum(axis=axis, dtype=y.dtype).astype(x.dtype)


@rule
def peak(x: Array, bias: Array | None) -> tuple[Array, Array, Array]:
    y = wide(x) if bias is None else wide(x) + wide(bias)
    largest = y.max(axis=-1)
    mass = np.exp(y - largest[..., None]).sum(axis=-1)
    return y.argmax(axis=-1).astype(np.int32), largest.astype(x.dtype), mass.astype(x.dtype)


@rule
def top_k(x: Array, *, k: int) -> tuple[Array, Array]:
    # A stable sort of the reversed axis, read backwards: falling order, and the first of equals first.
    order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)
