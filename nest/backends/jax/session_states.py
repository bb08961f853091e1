"""States of a session changed as a whole: slots forgotten, rows taken; compiled once for each set of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nest.backends.jax.engine import States
from nest.ir.inventory import states
from nest.ir.program import Program

__all__ = ["taken", "zeroed"]

Axes = tuple[tuple[str, int, int], ...]


def zeroed(program: Program, held: States, kept: np.ndarray[Any, Any], paths: Sequence[str]) -> States:
    """These states with the slots from kept[row] on at zero, in the buffers that were given."""
    specs = states(program)
    axes = tuple((path, specs[path].batch_axis, specs[path].write_axis or 0) for path in paths)
    after: States = _zeroed({path: held[path] for path in paths}, kept.astype(np.int32), axes)
    return after


def taken(program: Program, held: States, rows: Sequence[int], paths: Sequence[str]) -> States:
    """Copies of rows of these states."""
    specs = states(program)
    axes = tuple((path, specs[path].batch_axis, 0) for path in paths)
    rows_of: States = _taken({path: held[path] for path in paths}, np.array(rows, np.int32), axes)
    return rows_of


@partial(jax.jit, static_argnames="axes", donate_argnums=0)
def _zeroed(held: States, kept: Array, axes: Axes) -> States:
    after = {}
    for path, rows, slots in axes:
        array = held[path]
        limits = jnp.expand_dims(kept, [axis for axis in range(array.ndim) if axis != rows])
        places = jax.lax.broadcasted_iota(jnp.int32, array.shape, slots)
        after[path] = jnp.where(places < limits, array, jnp.zeros((), array.dtype))
    return after


@partial(jax.jit, static_argnames="axes")
def _taken(held: States, rows: Array, axes: Axes) -> States:
    return {path: jnp.take(held[path], rows, axis=axis) for path, axis, _ in axes}
