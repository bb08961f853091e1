"""CLIP: a picture's encoder and a text's, trained so that a picture and its caption point the same way.

Radford et al., 2021, "Learning Transferable Visual Models From Natural Language Supervision", arXiv 2103.00020. Every
size of the family with a vision transformer is this definition with other generics.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Bool,
    Dim,
    DType,
    Fill,
    Float,
    Int32,
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
    cast,
    concat,
    entry,
    exp,
    full,
    linear,
    rsqrt,
    slice,
    softmax,
    sum,
    take,
    take_along,
)


class Vision(Block):
    """A vision transformer with a norm before its layers as well as after them."""

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
    activation: Static[str]

    def build(self) -> None:
        rows, columns = self.Height // self.Patch, self.Width // self.Patch
        self.Patches = rows * columns
        self.class_token = Param("D", self.T)
        self.patches = PatchEmbedding(
            self.Height, self.Width, self.Channels, self.Patch, self.D, self.T, bias=False
        )
        self.positions = PatchPositions(self.Grid, rows, columns, self.D, self.T, prefix=1)
        self.pre_norm = LayerNorm(self.D, self.T)
        self.layers = block_array(
            self.Layers,
            lambda i: PreNormLayer(self.D, self.Heads, self.Inner, self.T, activation=self.activation),
        )
        self.post_norm = LayerNorm(self.D, self.T)

    def forward(
        self, pixels: Float[Tensor, "B Channels Height Width"], mask: Bool[Tensor, "B Patches"]
    ) -> Float[Tensor, "B D"]:
        """The state of the class token, which is always seen."""
        B = pixels.shape[0]
        first = broadcast_to(self.class_token, (B, 1, self.D))
        x = self.pre_norm(concat([first, self.patches(pixels)], axis=1) + self.positions())
        seen = concat([full((B, 1), True, "bool"), mask], axis=1)
        for layer in self.layers:
            x = layer(x, seen)
        return self.post_norm(slice(x, 1, 0, 1).reshape(B, self.D))


class Text(Block):
    """A causal transformer, whose state after the end token has seen the whole text."""

    Vocab: Dim
    MaxTokens: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    T: DType
    activation: Static[str]

    def build(self) -> None:
        self.token_embedding = Param("Vocab D", self.T)
        self.positions = Param("MaxTokens D", self.T)
        self.layers = block_array(
            self.Layers,
            lambda i: PreNormLayer(self.D, self.Heads, self.Inner, self.T, activation=self.activation),
        )
        self.norm = LayerNorm(self.D, self.T)

    def forward(self, tokens: Int32[Tensor, "B S"], lengths: Int32[Tensor, "B"]) -> Float[Tensor, "B D"]:
        """The state of each text's last token; what lies behind it is never seen."""
        B, S = tokens.shape
        self.require(S <= self.MaxTokens)
        x = take(self.token_embedding, tokens) + slice(self.positions, 0, 0, S)
        for layer in self.layers:
            x = layer.causal(x)
        return self.norm(take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1).reshape(B, self.D))


class Model(Block):
    """Both encoders, each with a projection into the space that they share."""

    Height: Dim
    Width: Dim
    Channels: Dim
    Patch: Dim
    Grid: Dim
    VisionD: Dim
    VisionHeads: Dim
    VisionInner: Dim
    VisionLayers: Dim
    Vocab: Dim
    MaxTokens: Dim
    TextD: Dim
    TextHeads: Dim
    TextInner: Dim
    TextLayers: Dim
    Joint: Dim
    T: DType
    activation: Static[str] = "quick_gelu"

    def build(self) -> None:
        self.Patches = self.Height // self.Patch * (self.Width // self.Patch)
        self.vision = Vision(
            self.Height, self.Width, self.Channels, self.Patch, self.Grid, self.VisionD, self.VisionHeads,
            self.VisionInner, self.VisionLayers, self.T, self.activation,
        )  # fmt: skip
        self.text = Text(
            self.Vocab, self.MaxTokens, self.TextD, self.TextHeads, self.TextInner, self.TextLayers, self.T,
            self.activation,
        )  # fmt: skip
        self.visual_projection = Linear(self.VisionD, self.Joint, self.T, bias=False)
        self.text_projection = Linear(self.TextD, self.Joint, self.T, bias=False)
        # Trained as a logarithm, and as one number.
        self.logit_scale = Param("", self.T)

    @entry
    def embed_image(
        self,
        pixels: Float[Tensor, "B Channels Height Width"],
        mask: Bool[Tensor, "B Patches"] = Fill("1"),
    ) -> Float[Tensor, "B Joint"]:
        """A vector of length one for each picture; patches where the mask is False are not seen."""
        return self.unit(self.visual_projection(self.vision(pixels, mask)))

    @entry
    def embed_text(
        self, tokens: Int32[Tensor, "B S"], lengths: Int32[Tensor, "B"] = Fill("S")
    ) -> Float[Tensor, "B Joint"]:
        """A vector of length one for each text, which begins with the start token and ends with the end token."""
        return self.unit(self.text_projection(self.text(tokens, lengths)))

    @entry
    def similarity(
        self, images: Float[Tensor, "N Joint"], texts: Float[Tensor, "M Joint"]
    ) -> Float[Tensor, "N M"]:
        """Logits of each text for each picture, from their vectors."""
        return self.logits(images, texts)

    @entry
    def match(
        self, images: Float[Tensor, "N Joint"], texts: Float[Tensor, "M Joint"]
    ) -> Float[Tensor, "N M"]:
        """The probability of each text for each picture, supposing that one of the texts is right."""
        return softmax(self.logits(images, texts), axis=1)

    def logits(
        self, images: Float[Tensor, "N Joint"], texts: Float[Tensor, "M Joint"]
    ) -> Float[Tensor, "N M"]:
        return linear(images, texts) * exp(self.logit_scale)

    def unit(self, x: Float[Tensor, "B Joint"]) -> Float[Tensor, "B Joint"]:
        """Of length one; the length is taken in f32."""
        wide = cast(x, "f32")
        return cast(wide * rsqrt(sum(wide * wide, 1, keepdims=True)), self.T)
