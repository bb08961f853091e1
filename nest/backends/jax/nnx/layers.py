"""The standard layers in NNX. Their text is copied into generated source, so each stands by itself.

They have the definition's names and shapes: a `Linear` holds `weight` [Out, In], where flax's own holds `kernel`
[In, Out]. So a model's state has the same paths and shapes on every backend, and gradients and checkpoints compare
without renaming or transposing.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array

from nest.backends.jax.nnx.helpers import fan_in, normal
from nest.backends.jax.rules.contraction import conv, linear
from nest.backends.jax.rules.normalization import group_norm, layer_norm, rms_norm

__all__ = ["LAYERS"]


class Linear(nnx.Module):
    """x @ weight.T + bias over the last axis; weight is [Out, In]."""

    def __init__(self, In: int, Out: int, T: Any, *, bias: bool = True, rngs: nnx.Rngs) -> None:
        self.weight = nnx.Param(fan_in(rngs.params(), (Out, In), T))
        self.bias = nnx.Param(jnp.zeros((Out,), T)) if bias else None

    def __call__(self, x: Array) -> Array:
        return linear(x, self.weight[...], None if self.bias is None else self.bias[...])


class Embedding(nnx.Module):
    """A row of weight [Vocab, D] for each id."""

    def __init__(self, Vocab: int, D: int, T: Any, *, rngs: nnx.Rngs) -> None:
        self.T = T
        self.weight = nnx.Param(normal(rngs.params(), (Vocab, D), T))

    def __call__(self, ids: Array) -> Array:
        return jnp.take(self.weight[...], ids, axis=0).astype(self.T)


class LayerNorm(nnx.Module):
    """Mean and variance normalization over the last axis, in f32."""

    def __init__(self, D: int, T: Any, *, eps: float, bias: bool = True, rngs: nnx.Rngs) -> None:
        self.eps = eps
        self.weight = nnx.Param(jnp.ones((D,), T))
        self.bias = nnx.Param(jnp.zeros((D,), T)) if bias else None

    def __call__(self, x: Array) -> Array:
        bias = None if self.bias is None else self.bias[...]
        return layer_norm(x, self.weight[...], bias, eps=self.eps)


class RMSNorm(nnx.Module):
    """Root mean square normalization over the last axis, in f32."""

    def __init__(self, D: int, T: Any, *, eps: float, rngs: nnx.Rngs) -> None:
        self.eps = eps
        self.weight = nnx.Param(jnp.ones((D,), T))

    def __call__(self, x: Array) -> Array:
        return rms_norm(x, self.weight[...], eps=self.eps)


class GroupNorm(nnx.Module):
    """Normalization over groups of the channels of [B, C, ...], in f32."""

    def __init__(self, C: int, T: Any, *, groups: int = 1, eps: float, rngs: nnx.Rngs) -> None:
        self.groups = groups
        self.eps = eps
        self.weight = nnx.Param(jnp.ones((C,), T))
        self.bias = nnx.Param(jnp.zeros((C,), T))

    def __call__(self, x: Array) -> Array:
        return group_norm(x, self.weight[...], self.bias[...], groups=self.groups, eps=self.eps)


class Conv1d(nnx.Module):
    """Cross-correlation over the last axis of [B, In, L]; weight is [Out, In, kernel]."""

    def __init__(
        self,
        In: int,
        Out: int,
        T: Any,
        *,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        self.stride = stride
        self.padding = padding
        self.weight = nnx.Param(fan_in(rngs.params(), (Out, In, kernel), T))
        self.bias = nnx.Param(jnp.zeros((Out,), T)) if bias else None

    def __call__(self, x: Array) -> Array:
        bias = None if self.bias is None else self.bias[...]
        return conv(x, self.weight[...], bias, stride=(self.stride,), padding=(self.padding,))


class Conv2d(nnx.Module):
    """Cross-correlation over the last two axes of [B, In, H, W]; weight is [Out, In//groups, kernel, kernel]."""

    def __init__(
        self,
        In: int,
        Out: int,
        T: Any,
        *,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
        bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        self.stride = stride
        self.padding = padding
        self.groups = groups
        self.weight = nnx.Param(fan_in(rngs.params(), (Out, In // groups, kernel, kernel), T))
        self.bias = nnx.Param(jnp.zeros((Out,), T)) if bias else None

    def __call__(self, x: Array) -> Array:
        bias = None if self.bias is None else self.bias[...]
        stride, padding = (self.stride,) * 2, (self.padding,) * 2
        return conv(x, self.weight[...], bias, stride=stride, padding=padding, groups=self.groups)


LAYERS: dict[str, Any] = {
    c.__name__: c for c in (Linear, Embedding, LayerNorm, RMSNorm, GroupNorm, Conv1d, Conv2d)
}
