"""Types of tensors, and the specifications of parameters and states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType

__all__ = ["ParamSpec", "StateSpec", "TensorType", "shape_text"]


def shape_text(shape: Iterable[Dim | int]) -> str:
    """`[B, N, D//Heads]`, as the author spelled it."""
    return "[" + ", ".join(str(d) for d in shape) + "]"


class TensorType:
    """A symbolic shape and an element type; prints as `T[B, N, D]`."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Iterable[Dim], dtype: DType) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    def same(self, other: TensorType) -> bool:
        """Whether shapes and dtypes are equal in every binding."""
        return (
            self.dtype.same(other.dtype)
            and len(self.shape) == len(other.shape)
            and all(a.same(b) for a, b in zip(self.shape, other.shape, strict=True))
        )

    def substitute(self, dims: Mapping[str, Dim], dtypes: Mapping[str, DType]) -> TensorType:
        """This type in another scope: its symbols replaced by that scope's expressions."""
        shape = [d.substitute(dims) for d in self.shape]
        return TensorType(shape, dtypes.get(self.dtype.name, self.dtype))

    def __repr__(self) -> str:
        return f"{self.dtype}{shape_text(self.shape)}"


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of a bound model: its definition path, concrete shape and dtype.

    `init` says how it is drawn where there are no weights; `trainable` is false for buffers.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    init: str = "normal"
    trainable: bool = True


@dataclass(frozen=True)
class StateSpec:
    """One state of a model: its definition path and its shape in session symbols.

    `shape` mixes integers with Dims over `Batch` and `Capacity`. Values are written along `write_axis`,
    one run of slots for each row of `batch_axis`.
    """

    path: str
    shape: tuple[Any, ...]
    dtype: str
    batch_axis: int
    write_axis: int | None

    def bound(self, session: Mapping[str, int]) -> tuple[int, ...]:
        """The concrete shape under a session's symbols."""
        return tuple(Dim.of(d).evaluate(session) for d in self.shape)
