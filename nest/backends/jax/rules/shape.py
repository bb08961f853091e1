"""Ops that move elements without changing them, and ops that make tensors from sizes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import rule

__all__: list[str] = []


@rule
def reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


@rule
def permute(x: Array, *, axes: tuple[int, ...]) -> Array:
    return x.transpose(axes)


@rule
def concat(*tensors: Array, axis: int) -> Array:
    return jnp.concatenate(tensors, axis)


@rule
def slice_(x: Array, *, axis: int, start: int, stop: int, step: int) -> Array:
    return lax.slice_in_dim(x, start, stop, step, axis)


@rule
def pad(x: Array, *, axis: int, before: int, after: int, value: float) -> Array:
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, after)
    return jnp.pad(x, widths, constant_values=value)


@rule
def broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    return jnp.broadcast_to(x, shape)


@rule
def iota(*, size: int, dtype: Any) -> Array:
    return jnp.arange(size, dtype=dtype)


@rule
def full(value: float, *, shape: tuple[int, ...], dtype: Any) -> Array:
    return jnp.full(shape, value, dtype)


@rule
def constant(*, values: Any, dtype: Any) -> Array:
    return jnp.array(values, dtype)
