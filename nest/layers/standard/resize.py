"""Interpolation along an axis."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.layers import ops
from nest.layers.annotations import Float32
from nest.layers.block import Block
from nest.layers.tensor import Tensor

__all__ = ["CubicResize"]

_A = -0.75


class CubicResize(Block):
    """Cubic convolution (Keys, 1981) along the first axis, with a = -0.75 and without antialiasing.

    The centre of element i of New lies at (i + 1/2) * Old/New - 1/2 of the elements of Old; beyond the ends, the first
    and the last of them go on. Along each axis of an image in turn, this is
    `torch.nn.functional.interpolate(mode="bicubic", align_corners=False)`.
    """

    Old: Dim
    New: Dim

    def forward(self, x: Float32[Tensor, "Old N D"]) -> Float32[Tensor, "New N D"]:
        """[Old, N, D] -> [New, N, D]."""
        # Places are counted in parts of 2*New, so that the whole and the part are exact.
        place = (ops.iota(self.New) * 2 + 1) * self.Old - self.New
        whole = place // (self.New * 2)
        part = (place - whole * (self.New * 2)).cast("f32") / (self.New * 2)
        rest = 1 - part
        before = self.tap(x, whole - 1, _far(part + 1)) + self.tap(x, whole, _near(part))
        after = self.tap(x, whole + 1, _near(rest)) + self.tap(x, whole + 2, _far(rest + 1))
        return before + after

    def tap(self, x: Tensor, at: Tensor, weight: Tensor) -> Tensor:
        inside = ops.maximum(ops.minimum(at, self.Old - 1), 0)
        return ops.take(x, inside, axis=0) * weight.reshape(self.New, 1, 1)


def _near(d: Tensor) -> Tensor:
    """The kernel at distances up to 1."""
    return ((_A + 2) * d - (_A + 3)) * d * d + 1


def _far(d: Tensor) -> Tensor:
    """The kernel at distances from 1 to 2."""
    return ((_A * d - 5 * _A) * d + 8 * _A) * d - 4 * _A
