"""ViT: a transformer encoder over the patches of an image, and a linear head on its class token.

Dosovitskiy et al., 2021, "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale", arXiv
2010.11929. Every size of the family is this definition with other generics.
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
    Linear,
    Param,
    PatchEmbedding,
    PatchPositions,
    PreNormLayer,
    Static,
    Tensor,
    block_array,
    broadcast_to,
    concat,
    entry,
    full,
    slice,
)


class Model(Block):
    """The whole network. Images of other sizes than it was trained on have its positions interpolated."""

    Height: Dim
    Width: Dim
    Channels: Dim
    Patch: Dim
    Grid: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    Classes: Dim
    T: DType
    eps: Static[float] = 1e-12
    activation: Static[str] = "gelu"

    def build(self) -> None:
        rows, columns = self.Height // self.Patch, self.Width // self.Patch
        self.Patches = rows * columns
        self.class_token = Param("1 1 D", self.T)
        self.patches = PatchEmbedding(self.Height, self.Width, self.Channels, self.Patch, self.D, self.T)
        self.positions = PatchPositions(self.Grid, rows, columns, self.D, self.T, prefix=1, batched=True)
        self.layers = block_array(
            self.Layers,
            lambda i: PreNormLayer(
                self.D, self.Heads, self.Inner, self.T, eps=self.eps, activation=self.activation
            ),
        )
        self.norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.classifier = Linear(self.D, self.Classes, self.T)

    @entry
    def forward(
        self,
        pixels: Float[Tensor, "B Channels Height Width"],
        mask: Bool[Tensor, "B Patches"] = Fill("1"),
    ) -> Float[Tensor, "B Classes"]:
        """Logits of each image's classes; patches where the mask is False are not seen."""
        B = pixels.shape[0]
        return self.classifier(slice(self.states(pixels, mask), 1, 0, 1).reshape(B, self.D))

    @entry
    def encode(
        self,
        pixels: Float[Tensor, "B Channels Height Width"],
        mask: Bool[Tensor, "B Patches"] = Fill("1"),
    ) -> Float[Tensor, "B Patches+1 D"]:
        """States of the class token, then of each patch, row by row."""
        return self.states(pixels, mask)

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
