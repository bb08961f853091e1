"""What vision transformers begin with: patches as vectors, and a table of positions at any size of image."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Static
from nest.layers.block import Block
from nest.layers.members import Param
from nest.layers.standard.resize import CubicResize
from nest.layers.tensor import Tensor

__all__ = ["PatchEmbedding", "PatchPositions"]


class PatchEmbedding(Block):
    """A vector for each square patch of an image (Dosovitskiy et al., 2021, "An Image is Worth 16x16 Words").

    It is the convolution whose stride is its kernel, which checkpoints store it as: `weight` is
    [D, Channels, Patch, Patch]. No two windows overlap, so it is a linear layer over each patch's pixels.
    """

    Height: Dim
    Width: Dim
    Channels: Dim
    Patch: Dim
    D: Dim
    T: DType
    bias: Static[bool | Tensor | None] = True

    def build(self) -> None:
        self.require(self.Height % self.Patch == 0)
        self.require(self.Width % self.Patch == 0)
        self.weight = Param("D Channels Patch Patch", self.T, init="fan_in")
        self.bias = Param("D", self.T, init="zeros") if self.bias else None

    def forward(
        self, pixels: Float[Tensor, "B Channels Height Width"]
    ) -> Float[Tensor, "B Height//Patch*(Width//Patch) D"]:
        """[B, Channels, Height, Width] -> [B, patches, D], row by row from the upper left corner."""
        B, C, P = pixels.shape[0], self.Channels, self.Patch
        rows, columns = self.Height // P, self.Width // P
        x = pixels.reshape(B, C, rows, P, columns, P).permute(0, 2, 4, 1, 3, 5)
        x = x.reshape(B, rows * columns, C * P * P)
        bias = self.bias if isinstance(self.bias, Tensor) else None
        return ops.linear(x, self.weight.reshape(self.D, C * P * P), bias)


class PatchPositions(Block):
    """A learned vector for each place of a grid of patches, after `prefix` ones for tokens that have no place.

    `weight` [Grid*Grid + prefix, D] is the table as it was trained, a square of Grid by Grid; some checkpoints store it
    `batched`, with a first axis of 1. For Rows by Columns patches it is interpolated by cubic convolution, as the
    reference libraries do; at its own size it is itself.
    """

    Grid: Dim
    Rows: Dim
    Columns: Dim
    D: Dim
    T: DType
    prefix: Static[int] = 0
    batched: Static[bool] = False

    def build(self) -> None:
        self.Count = self.Grid * self.Grid + self.prefix
        self.weight = Param("1 Count D" if self.batched else "Count D", self.T)
        self.as_trained = int(self.Rows) == int(self.Grid) and int(self.Columns) == int(self.Grid)
        if self.as_trained:
            self.require(self.Rows == self.Grid)
            self.require(self.Columns == self.Grid)
        else:
            self.to_rows = CubicResize(self.Grid, self.Rows)
            self.to_columns = CubicResize(self.Grid, self.Columns)

    def forward(self) -> Float[Tensor, "Rows*Columns+prefix D"]:
        """The table for Rows by Columns patches, row by row."""
        whole = self.weight.reshape(self.Count, self.D) if self.batched else self.weight
        if self.as_trained:
            return whole
        # In half precision the weights of an interpolation would no longer sum to one.
        table: Tensor = ops.slice(whole, 0, self.prefix, self.Count).cast("f32")
        table = self.to_rows(table.reshape(self.Grid, self.Grid, self.D)).permute(1, 0, 2)
        table = self.to_columns(table).permute(1, 0, 2).reshape(self.Rows * self.Columns, self.D).cast(self.T)
        if not self.prefix:
            return table
        return ops.concat([ops.slice(whole, 0, 0, self.prefix), table], axis=0)
