"""Helpers and layers of the common case in few lines, for source that is to be read: no sinks, no paths for GPUs.

Each takes the place of nest's own where a program asks no more of it. Their text is copied, so each stands by itself.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from nest.ir.program import Node, Program

__all__ = ["plain_helpers"]


def attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    """softmax(q k^T / sqrt(E)) v of [B, H, S, E] over the keys that the mask shows, in f32."""
    scores = jnp.einsum("bhqe,bhke->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[3] ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bhqk,bhke->bhqe", weights, v, preferred_element_type=jnp.float32).astype(q.dtype)


def visible(queries: int, keys: int, pos: Array | None = None) -> Array:
    """Bool [B or 1, 1, queries, keys]: query i, at slot pos + i of its row, sees the slots up to its own."""
    own = jnp.arange(queries)[:, None] + (0 if pos is None else pos[:, None, None, None])
    return jnp.broadcast_to(jnp.arange(keys) <= own, (own.shape[0] if own.ndim == 4 else 1, 1, queries, keys))


def update_cache(cache: nnx.Variable[Array], value: Array, pos: Array | int, axis: int) -> Array:
    """Write `value` at the slots pos, pos+1, ... of each row (axis 0) along `axis`; the whole cache."""
    write = jax.vmap(lambda row, new, start: lax.dynamic_update_slice_in_dim(row, new, start, axis - 1))
    cache.set_value(write(cache[...], value, jnp.broadcast_to(jnp.asarray(pos), value.shape[:1])))
    return cache[...]


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias over the last axis; weight is [Out, In]."""
    # Not x @ weight.T: on the CPU, XLA would then copy the transposed weight at every call.
    y = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
    return (y if bias is None else y + bias).astype(x.dtype)


def conv(x: Array, weight: Array, bias: Array, *, stride: tuple[int, ...], padding: tuple[int, ...]) -> Array:
    """Cross-correlation of x [B, Cin, ...] with weight [Cout, Cin, ...], zeros padded on both sides."""
    sides = [(p, p) for p in padding]
    y = lax.conv_general_dilated(x, weight, stride, sides, preferred_element_type=jnp.float32)
    return (y + bias.reshape(-1, *[1] * len(stride))).astype(x.dtype)


class LayerNorm(nnx.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis, in f32."""

    def __init__(self, D: int, T: Any, *, eps: float, rngs: nnx.Rngs) -> None:
        self.eps = eps
        self.weight = nnx.Param(jnp.ones((D,), T))
        self.bias = nnx.Param(jnp.zeros((D,), T))

    def __call__(self, x: Array) -> Array:
        y = x.astype(jnp.float32)
        y = y - y.mean(-1, keepdims=True)
        y = y * lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + self.eps)
        return (y * self.weight[...] + self.bias[...]).astype(x.dtype)


def plain_helpers(program: Program) -> dict[str, Any]:
    """The helpers that suffice for a program, by the name of the one that each replaces."""
    nodes = list(_nodes(program))
    return {
        helper.__name__: helper
        for helper, suffices in _SUFFICES.items()
        if all(suffices(node) for node in nodes)
    }


def _nodes(program: Program) -> Iterator[Node]:
    for function in program.functions():
        yield from function.nodes


def _plain_attention(node: Node) -> bool:
    """As many key heads as query heads, and nothing but causal masks, under which each query sees its own slot."""
    if node.op != "attention":
        return True
    q, k, _, _, *extra = node.inputs
    options = {n: v for n, v in node.attrs.items() if n != "causal"}
    bare = all(x is None for x in (*extra, *options.values()))
    return bare and q.type.shape[1].same(k.type.shape[1])  # type: ignore[union-attr]


def _plain_update(node: Node) -> bool:
    return node.op != "update" or (node.attrs["batch_axis"] == 0 and node.attrs["axis"] > 0)


def _plain_conv(node: Node) -> bool:
    return node.op != "conv" or (node.attrs["groups"].value == 1 and node.inputs[2] is not None)


def _anything(node: Node) -> bool:
    return True


_SUFFICES: dict[Any, Callable[[Node], bool]] = {
    attention: _plain_attention,
    visible: _plain_attention,
    update_cache: _plain_update,
    # Ejected models have their parameters in the type that they compute in.
    linear: _anything,
    conv: _plain_conv,
    LayerNorm: _anything,
}
