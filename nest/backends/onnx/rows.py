"""Activations as rows: what follows a matrix product stays [Rows, Columns] until something looks at the other axes.

`Gemm` takes and gives matrices. Shaping its result back, and to rows again for the next one, costs as much time as a
small op for each: a step of a decoder of four layers has eighty of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nest.backends.onnx.dims import Dims
from nest.backends.onnx.graph import Tensor, Type
from nest.ir.dim import Dim

__all__ = ["BY_ROWS", "Rows", "flat"]

BY_ROWS = frozenset(
    {"add", "sub", "mul", "gelu", "silu", "relu", "tanh", "sigmoid", "layer_norm", "rms_norm"}
)
"""Ops of which each row of the last axis depends on that row of the operands alone."""


@dataclass(frozen=True)
class Rows:
    """An op's operands as rows, and the type that its result then has."""

    operands: list[Any]
    type: Type


def flat(dims: Dims, operands: Sequence[Any], out: Type) -> Rows | None:
    """The operands of an op `BY_ROWS` as rows; None where none of them was rows before, or some are broadcast."""
    if len(out.shape) < 3:
        return None
    whole = [x for x in operands if isinstance(x, Tensor) and x.rank > 1]
    if not all(_alike(x.shape, out.shape) for x in whole):
        return None
    if not any(_was_rows(dims, x) for x in whole):
        return None
    count = Dim.constant(1)
    for dim in out.shape[:-1]:
        count = count * dim
    shape = (count, out.shape[-1])

    def as_rows(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.rank < 2:
            return x
        return Tensor(shape, x.dtype, dims.reshape(x.value, x.shape, shape))

    return Rows([as_rows(x) for x in operands], Type(shape, out.dtype))


def _was_rows(dims: Dims, x: Tensor) -> bool:
    _, before = dims.unshaped(x.value, x.shape)
    return len(before) == 2 and before[-1].same(x.shape[-1])


def _alike(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(x.same(y) for x, y in zip(a, b, strict=True))
