"""What generated NNX source calls: functions and layers whose text is copied into it."""

from __future__ import annotations

import inspect
import math
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from nest.backends.jax.rules import attention, contraction, indexing, normalization, reduction
from nest.backends.jax.rules.attention import rope, visible
from nest.backends.jax.rules.contraction import conv, einsum, expert_linear, linear, max_pool
from nest.backends.jax.rules.indexing import written
from nest.backends.jax.rules.normalization import batch_norm, group_norm, layer_norm, rms_norm
from nest.backends.jax.rules.reduction import cumsum, logsumexp, softmax, top_k

__all__ = ["HELPERS", "LAYERS", "helper_text"]


class Cache(nnx.Variable):
    """A tensor that a session keeps between calls."""


class Buffer(nnx.Variable):
    """A tensor of the checkpoint that is not trained."""


def update_cache(cache: Cache, value: Array, pos: Array | int, axis: int, rows: int = 0) -> Array:
    """Write `value` at the slots pos, pos+1, ... of each row along `axis`; the whole cache."""
    cache[...] = written(cache[...], value, pos, axis, rows)
    return cache[...]


def normal(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Random values of standard deviation 0.02."""
    return (0.02 * jax.random.normal(key, shape)).astype(dtype)


def fan_in(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Random values of variance one over the inputs of each output, which is axis 0."""
    scale = max(1, math.prod(shape[1:])) ** -0.5
    return (scale * jax.random.normal(key, shape)).astype(dtype)


class Linear(nnx.Module):
    """x @ weight.T + bias over the last axis; weight is [Out, In]."""

    def __init__(self, In: int, Out: int, T: Any, *, bias: bool = True, rngs: nnx.Rngs) -> None:
        self.weight = nnx.Param(fan_in(rngs.params(), (Out, In), T))
        self.bias = nnx.Param(jnp.zeros((Out,), T)) if bias else None

    def __call__(self, x: Array) -> Array:
        return linear(x, self.weight[...], None if self.bias is None else self.bias[...])


class LayerNorm(nnx.Module):
    """Mean and variance normalization over the last axis, in f32."""

    def __init__(self, D: int, T: Any, *, eps: float, rngs: nnx.Rngs) -> None:
        self.eps = eps
        self.weight = nnx.Param(jnp.ones((D,), T))
        self.bias = nnx.Param(jnp.zeros((D,), T))

    def __call__(self, x: Array) -> Array:
        return layer_norm(x, self.weight[...], self.bias[...], eps=self.eps)


HELPERS: dict[str, Any] = {
    f.__name__: f
    for f in (
        update_cache, written, visible, attention.attention, rope, linear, expert_linear, einsum, conv, max_pool, layer_norm,
        rms_norm, group_norm, batch_norm, softmax, cumsum, logsumexp, top_k, normal, fan_in, Cache, Buffer,
    )
}  # fmt: skip
LAYERS: dict[str, Any] = {c.__name__: c for c in (Linear, LayerNorm)}
