"""Convolution layers."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Static
from nest.layers.block import Block
from nest.layers.members import Param
from nest.layers.tensor import Tensor

__all__ = ["Conv1d", "Conv2d"]


class Conv1d(Block):
    """Convolution over the last axis of [B, In, L]; weight is [Out, In, kernel]."""

    In: Dim
    Out: Dim
    T: DType
    kernel: Static[int]
    stride: Static[int] = 1
    padding: Static[int] = 0
    bias: Static[bool | Tensor | None] = True

    def build(self) -> None:
        self.weight = Param("Out In kernel", self.T, init="fan_in")
        self.bias = Param("Out", self.T, init="zeros") if self.bias else None

    def forward(self, x: Float[Tensor, "B In L"]) -> Float[Tensor, "B Out (L+2*padding-kernel)//stride+1"]:
        """[B, In, L] -> [B, Out, (L + 2*padding - kernel)//stride + 1]."""
        bias = self.bias if isinstance(self.bias, Tensor) else None
        return ops.conv(x, self.weight, bias, stride=self.stride, padding=self.padding)


class Conv2d(Block):
    """Convolution over the last two axes of [B, In, H, W]; weight is [Out, In//groups, kernel, kernel]."""

    In: Dim
    Out: Dim
    T: DType
    kernel: Static[int]
    stride: Static[int] = 1
    padding: Static[int] = 0
    groups: Static[int] = 1
    bias: Static[bool | Tensor | None] = True

    def build(self) -> None:
        self.require(self.In % self.groups == 0)
        self.weight = Param("Out In//groups kernel kernel", self.T, init="fan_in")
        self.bias = Param("Out", self.T, init="zeros") if self.bias else None

    def forward(
        self, x: Float[Tensor, "B In H W"]
    ) -> Float[Tensor, "B Out (H+2*padding-kernel)//stride+1 (W+2*padding-kernel)//stride+1"]:
        """[B, In, H, W] -> [B, Out, H', W'], each side (size + 2*padding - kernel)//stride + 1."""
        bias = self.bias if isinstance(self.bias, Tensor) else None
        return ops.conv(x, self.weight, bias, stride=self.stride, padding=self.padding, groups=self.groups)
