"""Ops that pick elements by index, and write them.

An index outside its axis is an error here. Other backends wrap, clamp or read what is there, so a program
must not make one.
"""

from __future__ import annotations

import numpy as np

from nest.backends.reference.rules._registry import Array, rule
from nest.errors import CallError

__all__: list[str] = []


def _check(op: str, indices: Array, x: Array, axis: int) -> None:
    size = x.shape[axis]
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        raise CallError(
            f"{op}: the index {int(indices[outside].flat[0])} is outside axis {axis} of a tensor of shape "
            f"{list(x.shape)}; an index is 0 to {size - 1}."
        )


@rule
def take(x: Array, indices: Array, *, axis: int) -> Array:
    _check("take", indices, x, axis)
    return np.take(x, indices, axis)


@rule
def take_along(x: Array, indices: Array, *, axis: int) -> Array:
    _check("take_along", indices, x, axis)
    shape = (*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
    return np.take_along_axis(x, np.broadcast_to(indices, shape), axis)


@rule
def scatter_set(x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    _check("scatter_set", indices, x, axis)
    result = x.copy()
    np.put_along_axis(result, indices, updates, axis)
    return result
