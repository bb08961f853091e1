"""Ops that move elements without changing them, and ops that make tensors from dims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce as fold
from operator import mul as times

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.types import TensorType, shape_text
from nest.layers._trace import current, fail
from nest.layers.ops._emit import axis_of, emit, need_dtype, need_same, tensor
from nest.layers.tensor import Tensor

__all__ = [
    "broadcast_to",
    "concat",
    "constant",
    "full",
    "iota",
    "pad",
    "permute",
    "reshape",
    "slice",
    "stack",
]

Size = int | Dim


def _dims(shape: Iterable[Size]) -> tuple[Dim, ...]:
    return tuple(Dim.of(d) for d in shape)


def reshape(x: Tensor, shape: Iterable[Size]) -> Tensor:
    """The same elements in row-major order under another shape.

    Every axis is spelled: there is no -1, since a size that is not known is a size that is not checked.

    Raises:
        DefinitionError: the element counts are not equal in every call. `D//Heads * Heads` is D only once
            `require(D % Heads == 0)` has said so.
    """
    x = tensor(x, "reshape")
    target = _dims(shape)
    if negative := [d for d in target if d.value is not None and d.value < 0]:
        raise fail(
            f"reshape takes every axis spelled, and {negative[0]} was given.",
            ("x", x.type),
            hint="There is no -1: a size that is worked out is a size that is not checked.",
        )
    before, after = fold(times, x.shape, Dim.constant(1)), fold(times, target, Dim.constant(1))
    if not current().same(before, after):
        raise fail(
            f"reshape keeps the number of elements, and {before} is not {after}.",
            ("x", x.type),
            ("shape", TensorType(target, x.dtype)),
            hint=_indivisible(target),
        )
    target = tuple(map(current().simplify, target))
    return emit("reshape", [x], TensorType(target, x.dtype), shape=target)


def _indivisible(target: tuple[Dim, ...]) -> str:
    quotients = [d for d in target if "//" in str(d)]
    if not quotients:
        return ""
    return f"{quotients[0]} rounds down: state in build what divides it, as in self.require(D % Heads == 0)."


def permute(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The axes in another order: result axis i is x's axis `axes[i]`."""
    x = tensor(x, "permute")
    order = tuple(int(a) for a in axes)
    if sorted(order) != list(range(x.rank)):
        raise fail(
            f"permute of a rank-{x.rank} tensor takes each axis from 0 to {x.rank - 1} once, and got {order}.",
            ("x", x.type),
        )
    return emit("permute", [x], TensorType([x.shape[a] for a in order], x.dtype), axes=order)


def concat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors one after another along an axis; the other axes are equal."""
    given = [tensor(t, "concat", f"tensors[{i}]") for i, t in enumerate(tensors)]
    if not given:
        raise fail("concat takes at least one tensor.")
    first = given[0]
    axis = axis_of(first, axis, "concat")
    received = [(f"tensors[{i}]", t.type) for i, t in enumerate(given)]
    need_dtype("concat", **{f"tensors[{i}]": t for i, t in enumerate(given)})
    for i, t in enumerate(given[1:], 1):
        if t.rank != first.rank:
            raise fail(f"concat takes tensors of one rank; tensors[{i}] has rank {t.rank}.", *received)
        for a in range(first.rank):
            if a != axis:
                need_same(
                    first.shape[a], t.shape[a], f"concat along axis {axis}: axis {a} must be equal", *received
                )
    total = fold(lambda s, t: s + t.shape[axis], given[1:], first.shape[axis])
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return emit("concat", given, TensorType(shape, first.dtype), axis=axis)


def stack(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of one type along a new axis."""
    given = [tensor(t, "stack", f"tensors[{i}]") for i, t in enumerate(tensors)]
    if not given:
        raise fail("stack takes at least one tensor.")
    rank = given[0].rank + 1
    if not -rank <= axis < rank:
        raise fail(
            f"stack makes a tensor of rank {rank}, which has no axis {axis}.", ("tensors", given[0].type)
        )
    axis %= rank
    one = [reshape(t, (*t.shape[:axis], 1, *t.shape[axis:])) for t in given]
    return concat(one, axis)


def slice(x: Tensor, axis: int, start: Size, stop: Size, step: int = 1) -> Tensor:
    """x[..., start:stop:step, ...] along one axis; bounds are dims, counted from the start."""
    x = tensor(x, "slice")
    axis = axis_of(x, axis, "slice")
    low, high, size = Dim.of(start), Dim.of(stop), x.shape[axis]
    if step < 1:
        raise fail(f"slice takes a step of 1 or more, and got {step}.", ("x", x.type))
    outside = f"slice {low}:{high} is not inside axis {axis}, which is {size}."
    for smaller, larger in ((Dim.constant(0), low), (low, high), (high, size)):
        current().need_at_most(smaller, larger, outside, ("x", x.type))
    length = high - low if step == 1 else (high - low + step - 1) // step
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    return emit("slice", [x], TensorType(shape, x.dtype), axis=axis, start=low, stop=high, step=step)


def pad(x: Tensor, axis: int, before: Size, after: Size, value: float = 0.0) -> Tensor:
    """x with `before` and `after` elements of `value` added along an axis."""
    x = tensor(x, "pad")
    axis = axis_of(x, axis, "pad")
    low, high = Dim.of(before), Dim.of(after)
    shape = (*x.shape[:axis], low + x.shape[axis] + high, *x.shape[axis + 1 :])
    return emit("pad", [x], TensorType(shape, x.dtype), axis=axis, before=low, after=high, value=value)


def broadcast_to(x: Tensor, shape: Iterable[Size]) -> Tensor:
    """x repeated along axes of size 1, and along new axes in front."""
    x = tensor(x, "broadcast_to")
    target = _dims(shape)
    received = (("x", x.type), ("shape", TensorType(target, x.dtype)))
    if len(target) < x.rank:
        raise fail(f"broadcast_to cannot drop axes: rank {x.rank} to {shape_text(target)}.", *received)
    for have, want in zip(reversed(x.shape), reversed(target), strict=False):
        if not have.same(Dim.constant(1)):
            need_same(have, want, "broadcast_to stretches only axes of 1", *received)
    return emit("broadcast_to", [x], TensorType(target, x.dtype), shape=target)


def iota(size: Size, dtype: DType | str = "i32") -> Tensor:
    """0, 1, ..., size - 1."""
    length = Dim.of(size)
    current().need_at_most(Dim.constant(0), length, f"iota takes a size of 0 or more, and got {length}.")
    return emit("iota", [], TensorType([length], DType.of(dtype)), size=length)


def full(shape: Iterable[Size], value: bool | int | float | Dim, dtype: DType | str) -> Tensor:
    """A tensor of one value, which may be a dim."""
    target = _dims(shape)
    return emit("full", [value], TensorType(target, DType.of(dtype)), shape=target)


def constant(values: object, dtype: DType | str) -> Tensor:
    """A tensor from nested lists or tuples of numbers; `Float32` tables stay f32 whatever T is."""
    shape: list[Dim] = []
    level = values
    while isinstance(level, list | tuple):
        shape.append(Dim.constant(len(level)))
        level = level[0] if level else 0.0
    return emit(
        "constant", [], TensorType(shape, DType.of(dtype)), values=_frozen(values, [int(d) for d in shape])
    )


def _frozen(values: object, shape: list[int]) -> object:
    if not shape:
        if not isinstance(values, bool | int | float):
            raise fail(f"constant takes numbers in nested lists, and got {type(values).__name__}.")
        return values
    if not isinstance(values, list | tuple) or len(values) != shape[0]:
        raise fail("constant takes nested lists of one shape; one of them has another length.")
    return tuple(_frozen(v, shape[1:]) for v in values)
