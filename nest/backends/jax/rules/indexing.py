"""Ops that pick elements by index, and write them.

An index outside its axis cannot raise in compiled code: what is taken there is NaN, what is written is dropped.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import rule

__all__ = ["write_slots"]


@rule
def take(x: Array, indices: Array, *, axis: int) -> Array:
    return jnp.take(x, indices, axis)


@rule
def take_along(x: Array, indices: Array, *, axis: int) -> Array:
    return jnp.take_along_axis(x, indices, axis)


@rule
def scatter_set(x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    # By iotas: jnp.put_along_axis takes no symbolic sizes, which exports have.
    places = [lax.broadcasted_iota(jnp.int32, indices.shape, a) for a in range(x.ndim)]
    places[axis] = indices
    return x.at[tuple(places)].set(updates)


def write_slots(cache: Array, value: Array, pos: Array | int, axis: int, rows: int = 0) -> Array:
    """`cache` with `value` at the slots pos, pos+1, ... of each row along `axis`; `rows` is the axis of rows."""
    if isinstance(pos, int):
        return lax.dynamic_update_slice_in_dim(cache, value, pos, axis)
    if isinstance(cache.shape[rows], int) and cache.shape[rows] == 1:
        # Over rows it would be a scatter, whose checks of one index are a GPU kernel of their own.
        return lax.dynamic_update_slice_in_dim(cache, value, pos[0], axis)

    def write(cache: Array, value: Array, pos: Array) -> Array:
        return lax.dynamic_update_slice_in_dim(cache, value, pos, axis - (rows < axis))

    return jax.vmap(write, (rows, rows, 0), rows)(cache, value, pos)
