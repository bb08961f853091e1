"""Ops that move elements without changing them, and ops that make tensors from sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nest.backends.reference.rules._registry import Array, rule

__all__: list[str] = []


@rule
def reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


@rule
def permute(x: Array, *, axes: tuple[int, ...]) -> Array:
    return x.transpose(axes)


@rule
def concat(*tensors: Array, axis: int) -> Array:
    return np.concatenate(tensors, axis)


@rule
def slice_(x: Array, *, axis: int, start: int, stop: int, step: int) -> Array:
    where = [slice(None)] * x.ndim
    where[axis] = slice(start, stop, step)
    return x[tuple(where)]


@rule
def pad(x: Array, *, axis: int, before: int, after: int, value: float) -> Array:
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, after)
    return np.pad(x, widths, constant_values=value)


@rule
def broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


@rule
def iota(*, size: int, dtype: np.dtype[Any]) -> Array:
    return np.arange(size, dtype=dtype)


@rule
def full(value: float, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return np.full(shape, value, dtype)


@rule
def constant(*, values: Any, dtype: np.dtype[Any]) -> Array:
    return np.array(values, dtype)
