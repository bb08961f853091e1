"""DINOv2: a vision transformer that learned from pictures alone; each branch of a layer is scaled before it is added.

Oquab et al., 2023, "DINOv2: Learning Robust Visual Features without Supervision", arXiv 2304.07193; the scales are
Touvron et al.'s, 2021, "Going deeper with Image Transformers". Other sizes of the family are this definition with other
generics, the giant one aside, whose feed-forward layers are gated.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Bool,
    Dim,
    DType,
    Fill,
    Float,
    LayerNorm,
    Mlp,
    Param,
    PatchEmbedding,
    PatchPositions,
    SelfAttention,
    Static,
    Tensor,
    block_array,
    broadcast_to,
    concat,
    entry,
    full,
    slice,
)


class Layer(Block):
    """A pre-norm transformer layer whose attention and MLP have a learned gain a channel."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType
    eps: Static[float]
    activation: Static[str]

    def build(self) -> None:
        self.norm1 = LayerNorm(self.D, self.T, eps=self.eps)
        self.attention = SelfAttention(self.D, self.Heads, self.T)
        self.scale1 = Param("D", self.T, init="ones")
        self.norm2 = LayerNorm(self.D, self.T, eps=self.eps)
        self.mlp = Mlp(self.D, self.Inner, self.T, activation=self.activation)
        self.scale2 = Param("D", self.T, init="ones")

    def forward(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """Every place sees the places where the mask is True."""
        x = x + self.attention(self.norm1(x), mask) * self.scale1
        return x + self.mlp(self.norm2(x)) * self.scale2


class Model(Block):
    """The whole network. Pictures of other sizes than it was trained on have its positions interpolated."""

    Height: Dim
    Width: Dim
    Channels: Dim
    Patch: Dim
    Grid: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    T: DType
    eps: Static[float] = 1e-6
    activation: Static[str] = "gelu"

    def build(self) -> None:
        rows, columns = self.Height // self.Patch, self.Width // self.Patch
        self.Patches = rows * columns
        self.class_token = Param("1 1 D", self.T)
        self.patches = PatchEmbedding(self.Height, self.Width, self.Channels, self.Patch, self.D, self.T)
        self.positions = PatchPositions(self.Grid, rows, columns, self.D, self.T, prefix=1, batched=True)
        self.layers = block_array(
            self.Layers,
            lambda i: Layer(self.D, self.Heads, self.Inner, self.T, self.eps, self.activation),
        )
        self.norm = LayerNorm(self.D, self.T, eps=self.eps)

    @entry
    def forward(
        self,
        pixels: Float[Tensor, "B Channels Height Width"],
        mask: Bool[Tensor, "B Patches"] = Fill("1"),
    ) -> Float[Tensor, "B Patches+1 D"]:
        """States of the class token, then of each patch, row by row; patches where the mask is False are not seen."""
        return self.states(pixels, mask)

    @entry
    def embed_image(
        self,
        pixels: Float[Tensor, "B Channels Height Width"],
        mask: Bool[Tensor, "B Patches"] = Fill("1"),
    ) -> Float[Tensor, "B D"]:
        """A vector for each picture: the state of its class token."""
        return slice(self.states(pixels, mask), 1, 0, 1).reshape(pixels.shape[0], self.D)

    def states(
        self, pixels: Float[Tensor, "B Channels Height Width"], mask: Bool[Tensor, "B Patches"]
    ) -> Float[Tensor, "B Patches+1 D"]:
        B = pixels.shape[0]
        first = broadcast_to(self.class_token, (B, 1, self.D))
        x = concat([first, self.patches(pixels)], axis=1) + self.positions()
        # The class token is always seen.
        seen = concat([full((B, 1), True, "bool"), mask], axis=1)
        for layer in self.layers:
            x = layer(x, seen)
        return self.norm(x)
