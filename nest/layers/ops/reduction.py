"""Reductions, and ops along one axis. Sums and means of floats accumulate in f32."""

from __future__ import annotations

from collections.abc import Sequence

from nest.ir.dim import Dim
from nest.ir.dtype import bool_, i32
from nest.ir.types import TensorType
from nest.layers._trace import current, fail
from nest.layers.ops._emit import axis_of, broadcast, emit, need_dtype, need_kind, need_rank, tensor
from nest.layers.ops.contraction import window
from nest.layers.tensor import Tensor

__all__ = [
    "any",
    "argmax",
    "cumsum",
    "logsumexp",
    "max",
    "max_pool",
    "mean",
    "min",
    "peak",
    "softmax",
    "sum",
    "top_k",
]

Axes = int | Sequence[int]


def _reduce(op: str, x: Tensor, axes: Axes, keepdims: bool, kind: str | None) -> Tensor:
    x = tensor(x, op)
    if kind is not None:
        need_kind(x, kind, op)
    elif x.dtype.kind == "bool":
        raise fail(
            f"{op} takes numbers, and got bool.", ("x", x.type), hint="Use any, or cast(x, 'i32') to count."
        )
    given = [axes] if isinstance(axes, int) else list(axes)
    normal = tuple(sorted(axis_of(x, a, op) for a in given))
    if len(set(normal)) != len(normal):
        raise fail(f"{op} names an axis twice: {given}.", ("x", x.type))
    if not normal:
        raise fail(f"{op} takes at least one axis, and got none.", ("x", x.type))
    one = Dim.constant(1)
    shape = [one if a in normal else d for a, d in enumerate(x.shape) if keepdims or a not in normal]
    return emit(op, [x], TensorType(shape, x.dtype), axes=normal, keepdims=keepdims)


def sum(x: Tensor, axes: Axes, keepdims: bool = False) -> Tensor:
    """The sum over axes."""
    return _reduce("sum", x, axes, keepdims, None)


def mean(x: Tensor, axes: Axes, keepdims: bool = False) -> Tensor:
    """The mean over axes, of floats."""
    return _reduce("mean", x, axes, keepdims, "float")


def max(x: Tensor, axes: Axes, keepdims: bool = False) -> Tensor:
    """The largest element over axes."""
    return _reduce("max", x, axes, keepdims, None)


def min(x: Tensor, axes: Axes, keepdims: bool = False) -> Tensor:
    """The smallest element over axes."""
    return _reduce("min", x, axes, keepdims, None)


def any(x: Tensor, axes: Axes, keepdims: bool = False) -> Tensor:
    """Whether any element over axes is true."""
    return _reduce("any", x, axes, keepdims, "bool")


def logsumexp(x: Tensor, axes: Axes, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow."""
    return _reduce("logsumexp", x, axes, keepdims, "float")


def argmax(x: Tensor, axis: int = -1) -> Tensor:
    """The index of the first largest element along an axis, as Int32."""
    x = tensor(x, "argmax")
    axis = axis_of(x, axis, "argmax")
    if x.dtype.kind == "bool":
        raise fail("argmax takes numbers, and got bool.", ("x", x.type), hint="cast(x, 'i32') counts.")
    return emit("argmax", [x], TensorType([d for a, d in enumerate(x.shape) if a != axis], i32), axis=axis)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, computed in f32."""
    x = tensor(x, "softmax")
    need_kind(x, "float", "softmax")
    return emit("softmax", [x], x.type, axis=axis_of(x, axis, "softmax"))


def cumsum(x: Tensor, axis: int) -> Tensor:
    """The running sum along an axis; element i holds the sum up to and with i."""
    x = tensor(x, "cumsum")
    if x.dtype.value == bool_.value:
        raise fail("cumsum takes numbers.", ("x", x.type), hint="cast(x, 'i32') counts.")
    return emit("cumsum", [x], x.type, axis=axis_of(x, axis, "cumsum"))


def top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest elements along the last axis in falling order, and their Int32 indices; ties by index."""
    x = tensor(x, "top_k")
    size = x.shape[-1].value
    if k < 1 or (size is not None and k > size):
        raise fail(f"top_k takes k from 1 to {x.shape[-1]}, and got {k}.", ("x", x.type))
    shape = (*x.shape[:-1], Dim.constant(k))
    values, indices = current().emit(
        "top_k", (x.value(),), {"k": int(k)}, TensorType(shape, x.dtype), TensorType(shape, i32)
    )
    return Tensor(values), Tensor(indices)


def peak(x: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The largest element of y = x + bias along the last axis: its index, itself, and sum(exp(y - itself)).

    They are what a choice of the likeliest takes from logits: `-log` of the sum is its log-probability. As one op, so
    that a plan may find the largest without computing every other.

    Args:
        x: [..., N], of floats. bias: broadcasts to x; none if left out.

    Returns:
        The index of the first largest, Int32 [...]; the largest and the sum, of x's dtype, [...].
    """
    x = tensor(x, "peak")
    need_kind(x, "float", "peak")
    given: list[Tensor] = [x]
    if bias is not None:
        given.append(tensor(bias, "peak", "bias"))
        need_dtype("peak", x=x, bias=given[1])
        shape = broadcast("peak", x, given[1])
        if len(shape) != x.rank or not all(a.same(b) for a, b in zip(shape, x.shape, strict=True)):
            raise fail("peak takes a bias that broadcasts to x.", ("x", x.type), ("bias", given[1].type))
    shape = x.shape[:-1]
    types = (TensorType(shape, i32), TensorType(shape, x.dtype), TensorType(shape, x.dtype))
    operands = (x.value(), given[1].value() if bias is not None else None)
    place, largest, mass = current().emit("peak", operands, {}, *types)
    return Tensor(place), Tensor(largest), Tensor(mass)


def max_pool(x: Tensor, *, kernel: int, stride: int, padding: int = 0) -> Tensor:
    """The largest element of each square window of x [B, C, H, W]; padding never wins."""
    x = tensor(x, "max_pool")
    need_rank(x, 4, "max_pool")
    need_kind(x, "float", "max_pool")
    if kernel < 1 or stride < 1 or not 0 <= padding <= kernel // 2:
        raise fail(f"max_pool: kernel {kernel}, stride {stride} and padding {padding} do not make windows.")
    size = Dim.constant(kernel)
    shape = (*x.shape[:2], *(window(d, size, stride, padding) for d in x.shape[2:]))
    return emit("max_pool", [x], TensorType(shape, x.dtype), kernel=kernel, stride=stride, padding=padding)
