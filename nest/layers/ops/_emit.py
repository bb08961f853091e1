"""What every op shares: emitting its node, and the checks that their errors are worded by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Operand
from nest.ir.types import TensorType
from nest.layers._calls import coincidence
from nest.layers._trace import current, fail
from nest.layers.tensor import Scalar, Tensor, as_tensor

__all__ = ["axis_of", "broadcast", "emit", "need_kind", "need_rank", "need_same", "operand", "tensor"]


_VIEWS = frozenset({"reshape", "permute", "slice", "broadcast_to"})


def emit(op: str, inputs: Sequence[Tensor | Scalar | None], type_: TensorType, **attrs: Any) -> Tensor:
    """Append a node of one result."""
    (value,) = current().emit(op, tuple(operand(x) for x in inputs), attrs, type_)
    # What only looks at a state through another shape is a view of it too.
    source = inputs[0] if op in _VIEWS and inputs else None
    return Tensor(value, source._state if isinstance(source, Tensor) else None)


def operand(x: Tensor | Scalar | None) -> Operand | None:
    """A node's input: the value of a tensor, or a number as it is."""
    return x.value() if isinstance(x, Tensor) else x


def tensor(x: Any, op: str, argument: str = "x") -> Tensor:
    """The tensor given for an argument of an op."""
    return as_tensor(x, op, argument)


def axis_of(x: Tensor, axis: int, op: str) -> int:
    """An axis counted from either end, as one counted from the start."""
    if not -x.rank <= axis < x.rank:
        raise fail(f"{op} of a rank-{x.rank} tensor has no axis {axis}.", ("x", x.type))
    return axis % x.rank


def need_rank(x: Tensor, rank: int, op: str, argument: str = "x") -> None:
    if x.rank != rank:
        raise fail(
            f"{op} takes a tensor of rank {rank} for '{argument}', and got rank {x.rank}.", (argument, x.type)
        )


def need_kind(x: Tensor, kind: str, op: str, argument: str = "x") -> None:
    if x.dtype.kind != kind:
        article = "an" if kind[0] in "aeiou" else "a"
        raise fail(
            f"{op} takes {article} {kind} tensor for '{argument}', and got {x.dtype}.",
            (argument, x.type),
            hint="cast(x, dtype) converts.",
        )


def need_same(a: Dim, b: Dim, rule: str, *received: tuple[str, object]) -> None:
    """Raise `rule` unless two dims are equal in every call."""
    if not current().same(a, b):
        raise fail(f"{rule}: {a} and {b}.", *received, hint=coincidence(a, b))


def need_dtype(op: str, **tensors: Tensor | None) -> DType:
    """The one element type of several tensors."""
    given = {n: t for n, t in tensors.items() if t is not None}
    first_name, first = next(iter(given.items()))
    for name, other in given.items():
        if not first.dtype.same(other.dtype):
            raise fail(
                f"{op} takes one element type, and got {first.dtype} for '{first_name}' and {other.dtype} for "
                f"'{name}'.",
                *((n, t.type) for n, t in given.items()),
                hint="cast(x, dtype) converts; nothing is converted by itself.",
            )
    return first.dtype


def broadcast(op: str, *tensors: Tensor) -> tuple[Dim, ...]:
    """The shape that several tensors broadcast to: axes are aligned at the end; a 1 stretches."""
    one = Dim.constant(1)
    trace = current()
    rank = max(t.rank for t in tensors)
    shape: list[Dim] = []
    for position in range(rank):
        chosen = one
        for t in tensors:
            index = position - (rank - t.rank)
            if index < 0 or t.shape[index].same(one):
                continue
            if chosen.same(one):
                chosen = t.shape[index]
            elif not trace.same(chosen, t.shape[index]):
                raise fail(
                    f"{op}: the shapes do not broadcast; axis {position - rank} is {chosen} and {t.shape[index]}.",
                    *((f"operand {i}", t.type) for i, t in enumerate(tensors)),
                    hint=coincidence(chosen, t.shape[index]),
                )
        shape.append(chosen)
    return tuple(shape)
