"""Reductions, and ops along one axis. Floats are summed in f32; integers in their own type."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import rule

__all__: list[str] = []

Axes = tuple[int, ...]


def _wide(x: Array) -> Array:
    return x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x


@rule
def sum_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    y = _wide(x)
    return y.sum(axes, y.dtype, keepdims=keepdims).astype(x.dtype)


@rule
def mean(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return _wide(x).mean(axes, keepdims=keepdims).astype(x.dtype)


@rule
def max_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return x.max(axes, keepdims=keepdims)


@rule
def min_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return x.min(axes, keepdims=keepdims)


@rule
def any_(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    return x.any(axes, keepdims=keepdims)


@rule
def logsumexp(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    """log(sum(exp(x))) over axes, in f32."""
    return jax.nn.logsumexp(x.astype(jnp.float32), axes, keepdims=keepdims).astype(x.dtype)


@rule
def argmax(x: Array, *, axis: int) -> Array:
    return x.argmax(axis).astype(jnp.int32)


@rule
def softmax(x: Array, *, axis: int) -> Array:
    """exp(x) / sum(exp(x)) along an axis, in f32."""
    return jax.nn.softmax(x.astype(jnp.float32), axis).astype(x.dtype)


@rule
def cumsum(x: Array, *, axis: int) -> Array:
    """The running sum along an axis; floats are summed in f32."""
    dtype = jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype
    return x.cumsum(axis, dtype).astype(x.dtype)


@rule
def peak(x: Array, bias: Array | None = None) -> tuple[Array, Array, Array]:
    """Where the largest of x + bias is along the last axis, that, and the sum of exp(what each is less)."""
    y = x.astype(jnp.float32) if bias is None else x.astype(jnp.float32) + bias
    largest = y.max(-1, keepdims=True)
    mass = jnp.exp(y - largest).sum(-1)
    return y.argmax(-1).astype(jnp.int32), largest[..., 0].astype(x.dtype), mass.astype(x.dtype)


@rule
def top_k(x: Array, *, k: int) -> tuple[Array, Array]:
    """The k largest of the last axis in falling order, with their indices; the first of equals comes first."""
    # To XLA, -0 is less than 0.
    _, indices = lax.top_k(jnp.where(x == 0, jnp.zeros((), x.dtype), x), k)
    return jnp.take_along_axis(x, indices, axis=-1), indices.astype(jnp.int32)
