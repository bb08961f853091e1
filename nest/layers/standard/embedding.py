"""Embedding."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Int32
from nest.layers.block import Block
from nest.layers.members import Param
from nest.layers.tensor import Tensor

__all__ = ["Embedding"]


class Embedding(Block):
    """A row of `weight` [Vocab, D] for each id in 0..Vocab-1."""

    Vocab: Dim
    D: Dim
    T: DType

    def build(self) -> None:
        self.weight = Param("Vocab D", self.T)

    def forward(self, ids: Int32[Tensor, "*S"]) -> Float[Tensor, "*S D"]:
        """[*S] -> [*S, D]."""
        return ops.take(self.weight, ids, axis=0)
