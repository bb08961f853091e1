"""Ops that pick elements by index, and write them."""

from __future__ import annotations

from nest.ir.types import TensorType
from nest.layers._trace import fail
from nest.layers.ops._emit import axis_of, emit, need_dtype, need_kind, need_rank, need_same, tensor
from nest.layers.tensor import Tensor

__all__ = ["scatter_set", "take", "take_along"]


def _check_constant(indices: Tensor, x: Tensor, axis: int) -> None:
    """Indices that stand in the definition are checked with it."""
    node, size = indices._value.node, x.shape[axis].value
    if node is None or node.op != "constant" or size is None:
        return
    for index in _flat(node.attrs["values"]):
        if not 0 <= index < size:
            raise fail(
                f"take: the index {index} is not in axis {axis}, which is {x.shape[axis]} = {size}.",
                ("x", x.type),
            )


def _flat(values: object) -> list[int]:
    return [i for v in values for i in _flat(v)] if isinstance(values, tuple) else [int(values)]  # type: ignore[call-overload]


def take(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """Slices of x along an axis: the axis is replaced by the indices' axes. Indices are in 0..size-1."""
    x, indices = tensor(x, "take"), tensor(indices, "take", "indices")
    need_kind(indices, "int", "take", "indices")
    axis = axis_of(x, axis, "take")
    _check_constant(indices, x, axis)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return emit("take", [x, indices], TensorType(shape, x.dtype), axis=axis)


def take_along(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """result[..., i, ...] = x[..., indices[..., i, ...], ...]: one index for each place of the other axes.

    `indices` has x's rank; its axes other than `axis` are x's or 1.
    """
    x, indices = tensor(x, "take_along"), tensor(indices, "take_along", "indices")
    need_kind(indices, "int", "take_along", "indices")
    need_rank(indices, x.rank, "take_along", "indices")
    axis = axis_of(x, axis, "take_along")
    received = (("x", x.type), ("indices", indices.type))
    shape = list(x.shape)
    for a in range(x.rank):
        if a == axis:
            shape[a] = indices.shape[a]
        elif str(indices.shape[a]) != "1":
            need_same(x.shape[a], indices.shape[a], f"take_along: axis {a} must be equal or 1", *received)
    return emit("take_along", [x, indices], TensorType(shape, x.dtype), axis=axis)


def scatter_set(x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """x with x[..., indices[..., i, ...], ...] = updates[..., i, ...] along an axis.

    `indices` and `updates` have one shape, x's but along `axis`. No index stands twice in one place.
    """
    x, indices = tensor(x, "scatter_set"), tensor(indices, "scatter_set", "indices")
    updates = tensor(updates, "scatter_set", "updates")
    need_kind(indices, "int", "scatter_set", "indices")
    need_dtype("scatter_set", x=x, updates=updates)
    need_rank(indices, x.rank, "scatter_set", "indices")
    need_rank(updates, x.rank, "scatter_set", "updates")
    axis = axis_of(x, axis, "scatter_set")
    received = (("x", x.type), ("indices", indices.type), ("updates", updates.type))
    for a in range(x.rank):
        need_same(
            indices.shape[a], updates.shape[a], f"scatter_set: axis {a} of indices and updates", *received
        )
        if a != axis:
            need_same(x.shape[a], updates.shape[a], f"scatter_set: axis {a} of x and updates", *received)
    return emit("scatter_set", [x, indices, updates], x.type, axis=axis)
