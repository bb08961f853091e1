"""Linear."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Static
from nest.layers.block import Block
from nest.layers.members import Param
from nest.layers.tensor import Tensor

__all__ = ["Linear"]


class Linear(Block):
    """x @ weight.T + bias over the last axis; weight is [Out, In], as checkpoints store it."""

    In: Dim
    Out: Dim
    T: DType
    bias: Static[bool | Tensor | None] = True

    def build(self) -> None:
        self.weight = Param("Out In", self.T, init="fan_in")
        self.bias = Param("Out", self.T, init="zeros") if self.bias else None

    def forward(self, x: Float[Tensor, "*S In"]) -> Float[Tensor, "*S Out"]:
        """[*S, In] -> [*S, Out]."""
        bias = self.bias if isinstance(self.bias, Tensor) else None
        return ops.linear(x, self.weight, bias)
