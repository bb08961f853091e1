"""Normalization layers."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Static
from nest.layers.block import Block
from nest.layers.members import Buffer, Param
from nest.layers.tensor import Tensor

__all__ = ["BatchNorm", "GroupNorm", "LayerNorm", "RMSNorm"]


class LayerNorm(Block):
    """Mean and variance normalization over the last axis (Ba, Kiros and Hinton, 2016)."""

    D: Dim
    T: DType
    eps: Static[float] = 1e-5
    bias: Static[bool | Tensor | None] = True

    def build(self) -> None:
        self.weight = Param("D", self.T, init="ones")
        self.bias = Param("D", self.T, init="zeros") if self.bias else None

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        """[*S, D] -> [*S, D]."""
        bias = self.bias if isinstance(self.bias, Tensor) else None
        return ops.layer_norm(x, self.weight, bias, eps=self.eps)


class RMSNorm(Block):
    """Root mean square normalization over the last axis (Zhang and Sennrich, 2019)."""

    D: Dim
    T: DType
    eps: Static[float] = 1e-6

    def build(self) -> None:
        self.weight = Param("D", self.T, init="ones")

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        """[*S, D] -> [*S, D]."""
        return ops.rms_norm(x, self.weight, eps=self.eps)


class GroupNorm(Block):
    """Normalization over groups of the channels of [B, C, ...] (Wu and He, 2018)."""

    C: Dim
    T: DType
    groups: Static[int]
    eps: Static[float] = 1e-5

    def build(self) -> None:
        self.require(self.C % self.groups == 0)
        self.weight = Param("C", self.T, init="ones")
        self.bias = Param("C", self.T, init="zeros")

    def forward(self, x: Float[Tensor, "B C *S"]) -> Float[Tensor, "B C *S"]:
        """[B, C, *S] -> [B, C, *S]."""
        return ops.group_norm(x, self.weight, self.bias, self.groups, eps=self.eps)


class BatchNorm(Block):
    """Normalization of each channel of [B, C, ...] by stored statistics (Ioffe and Szegedy, 2015), not by the batch's.

    `running_mean` and `running_var` are buffers: training leaves them as they are.
    """

    C: Dim
    T: DType
    eps: Static[float] = 1e-5

    def build(self) -> None:
        self.weight = Param("C", self.T, init="ones")
        self.bias = Param("C", self.T, init="zeros")
        self.running_mean = Buffer("C", self.T)
        self.running_var = Buffer("C", self.T, init="ones")

    def forward(self, x: Float[Tensor, "B C *S"]) -> Float[Tensor, "B C *S"]:
        """[B, C, *S] -> [B, C, *S]."""
        return ops.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
