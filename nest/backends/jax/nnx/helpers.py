"""Functions that generated NNX source calls. Their text is copied into it, so each stands by itself.

Most of them are the rules of the jax backend: what an op computes is written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from nest.backends.jax.rules.attention import attention, rope, visible
from nest.backends.jax.rules.contraction import (
    conv,
    einsum,
    expert_linear,
    linear,
    max_pool,
    quantized_linear,
)
from nest.backends.jax.rules.indexing import write_slots
from nest.backends.jax.rules.normalization import batch_norm, group_norm, layer_norm, rms_norm
from nest.backends.jax.rules.platform import current_platform
from nest.backends.jax.rules.reduction import cumsum, logsumexp, peak, softmax, top_k

__all__ = ["HELPERS", "Buffer", "Cache"]


class Cache(nnx.Variable[Array]):
    """A tensor that a session keeps between calls."""


class Buffer(nnx.Variable[Array]):
    """A tensor of the checkpoint that is not trained."""


def normal(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Random values of standard deviation 0.02."""
    return (0.02 * jax.random.normal(key, shape)).astype(dtype)


def fan_in(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Random values of variance one over the inputs of each output; outputs are axis 0."""
    scale = 1 / math.sqrt(max(1, math.prod(shape[1:])))
    return (scale * jax.random.normal(key, shape)).astype(dtype)


def update_cache(cache: Cache, value: Array, pos: Array | int, axis: int, rows: int = 0) -> Array:
    """Write `value` at the slots pos, pos+1, ... of each row along `axis`; the whole cache."""
    cache.set_value(write_slots(cache[...], value, pos, axis, rows))
    return cache[...]


def while_loop(
    cond: Callable[..., Array],
    body: Callable[..., tuple[Array, ...]],
    carry: tuple[Array, ...],
    max_trips: int,
    state: nnx.Dict[Any] | None = None,
) -> tuple[Array, ...]:
    """Repeat `body` while `cond` holds, at most `max_trips` times; both take the carry, and the state if there is one.

    Caches cannot change inside `lax.while_loop`, so each trip merges a state of its own.
    """
    graph, leaves = nnx.split(nnx.Dict() if state is None else state)

    def arguments(carry: tuple[Array, ...], inner: Any) -> tuple[Any, ...]:
        return carry if state is None else (*carry, inner)

    def test(loop: Any) -> Array:
        trip, carry, leaves = loop
        more: Array = cond(*arguments(carry, nnx.merge(graph, leaves)))
        return jnp.logical_and(more, trip < max_trips)

    def advance(loop: Any) -> Any:
        trip, carry, leaves = loop
        inner = nnx.merge(graph, leaves)
        carry = body(*arguments(carry, inner))
        return trip + 1, carry, nnx.state(inner)

    _, carry, leaves = lax.while_loop(test, advance, (jnp.int32(0), carry, leaves))
    if state is not None:
        nnx.update(state, leaves)
    return carry


HELPERS: dict[str, Any] = {
    f.__name__: f
    for f in (
        Cache, Buffer, current_platform, write_slots, update_cache, visible, attention, rope, linear, expert_linear,
        quantized_linear,
        einsum, conv, max_pool, layer_norm, rms_norm, group_norm, batch_norm, softmax, cumsum, logsumexp, peak, top_k,
        while_loop, normal, fan_in,
    )
}  # fmt: skip
