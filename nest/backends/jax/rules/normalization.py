"""Normalizations, computed in f32 and given back in the tensor's type, which their parameters are rounded to first."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import rule

__all__: list[str] = []


@rule
def layer_norm(x: Array, weight: Array | None, bias: Array | None, *, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis, in f32."""
    y = x.astype(jnp.float32)
    mean = y.mean(-1, keepdims=True)
    if x.dtype.itemsize == 2:
        # Both sums in one pass over x, which is one kernel of a decode less. What is lost where the mean is far larger
        # than the deviation, numbers of 16 bits had lost before.
        variance = jnp.maximum(jnp.square(y).mean(-1, keepdims=True) - jnp.square(mean), 0.0)
        y = (y - mean) * lax.rsqrt(variance + eps)
    else:
        y = y - mean
        y = y * lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + eps)
    y = y if weight is None else y * weight.astype(x.dtype)
    return (y if bias is None else y + bias.astype(x.dtype)).astype(x.dtype)


@rule
def rms_norm(x: Array, weight: Array | None, *, eps: float) -> Array:
    """x / sqrt(mean(x*x) + eps) * weight over the last axis, in f32."""
    y = x.astype(jnp.float32)
    y = y * lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + eps)
    return (y if weight is None else y * weight.astype(x.dtype)).astype(x.dtype)


@rule
def group_norm(x: Array, weight: Array, bias: Array, *, groups: int, eps: float) -> Array:
    """layer_norm over each of `groups` groups of channels of x [B, C, ...], in f32."""
    size = math.prod(x.shape[1:]) // groups  # not -1, which no empty batch can be asked for
    y = x.astype(jnp.float32).reshape(x.shape[0], groups, size)
    y = y - y.mean(-1, keepdims=True)
    y = y * lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + eps)
    channels = (-1, *[1] * (x.ndim - 2))
    weight, bias = (p.astype(x.dtype).reshape(channels) for p in (weight, bias))
    return (y.reshape(x.shape) * weight + bias).astype(x.dtype)


@rule
def batch_norm(x: Array, mean: Array, variance: Array, weight: Array, bias: Array, *, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) * weight + bias a channel of x [B, C, ...], in f32."""
    mean, variance, weight, bias = (
        p.astype(jnp.float32).reshape(-1, *[1] * (x.ndim - 2)) for p in (mean, variance, weight, bias)
    )
    return ((x - mean) * lax.rsqrt(variance + eps) * weight + bias).astype(x.dtype)
