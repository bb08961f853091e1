"""What a block's `build` may assign beside other blocks: parameters, buffers and states."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from nest.errors import DefinitionError
from nest.ir.dtype import DType
from nest.layers._where import caller_line

if TYPE_CHECKING:
    from nest.layers.tensor import Tensor

__all__ = ["Buffer", "Param", "ParamMember", "State"]


def _axes(shape: object) -> str:
    if not isinstance(shape, str):
        raise DefinitionError(f'Axes are text in the block\'s generics, as in "Out In"; got {shape!r}.')
    return shape


class ParamMember:
    """What `Param` and `Buffer` leave in a block until its methods are traced."""

    def __init__(self, shape: str, dtype: DType | str, init: str, trainable: bool) -> None:
        self.shape = _axes(shape)
        self.dtype = DType.of(dtype)
        self.init = init
        self.trainable = trainable
        self.where = caller_line(sys._getframe(2))


def Param(shape: str, dtype: DType | str, init: str = "normal") -> Tensor:  # noqa: N802 (reads as the type it stands for)
    """A trainable tensor of a block, read from the checkpoint; in methods it is a tensor.

    Args:
        shape: axes in the block's generics, such as `"Out In"` or `"D Mels 3"`.
        dtype: the block's `T`, or a concrete type.
        init: how it is drawn where there are no weights: `"normal"` (standard deviation 0.02), `"fan_in"`
            (normal, of variance one over the product of all axes but the first), `"zeros"` or `"ones"`.
    """
    return ParamMember(shape, dtype, init, True)  # type: ignore[return-value]


def Buffer(shape: str, dtype: DType | str, init: str = "zeros") -> Tensor:  # noqa: N802 (likewise)
    """A tensor of a block that comes from the checkpoint and is not trained, such as running statistics."""
    return ParamMember(shape, dtype, init, False)  # type: ignore[return-value]


class State:
    """A tensor that a session keeps between calls, zero when the session starts.

    Args:
        shape: axes in the block's generics and the session's symbols `Batch` and `Capacity`.
        dtype: the block's `T`, or a concrete type.
        batch_axis: the axis of the rows of the batch.
        write_axis: the axis of slots, which `update` writes at a position; None where the state is only ever
            assigned as a whole.
    """

    def __init__(
        self, shape: str, dtype: DType | str, *, batch_axis: int = 0, write_axis: int | None = None
    ) -> None:
        self.shape = _axes(shape)
        self.where = caller_line(sys._getframe(1))
        self.dtype = DType.of(dtype)
        self.batch_axis = batch_axis
        self.write_axis = write_axis

    def read(self) -> Tensor:
        """The whole state, a view that is good until the next write."""
        self._outside("read")

    def assign(self, value: Tensor) -> Tensor:
        """Replace the whole state; gives `value` back, never the session's buffer."""
        self._outside("assign")

    def update(self, value: Tensor, pos: Tensor | int) -> Tensor:
        """Write `value` at the slots `pos, pos+1, ...` of each row; gives the whole buffer, good until the next write.

        Args:
            value: the state's shape, with any length along its write axis.
            pos: Int32[Batch], the first slot of each row; an integer stands for every row.
        """
        self._outside("update")

    def _outside(self, method: str) -> NoReturn:
        raise DefinitionError(
            f"State.{method} was called in build: states are used in methods, when they are traced."
        )
