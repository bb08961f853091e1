"""SigLIP: CLIP's two encoders trained with a sigmoid a pair, so that each picture and text is judged by itself.

Zhai et al., 2023, "Sigmoid Loss for Language Image Pre-Training", arXiv 2303.15343. Pictures have no class token: a
learned query attends to the patches. Other sizes of the family are this definition with other generics.
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
    Mlp,
    Param,
    PatchEmbedding,
    PatchPositions,
    PreNormLayer,
    Static,
    Tensor,
    attention,
    block_array,
    broadcast_to,
    cast,
    entry,
    exp,
    full,
    linear,
    merge_heads,
    rsqrt,
    sigmoid,
    slice,
    split_heads,
    sum,
    take,
)


class AttentionPool(Block):
    """One learned query that attends to all states, and an MLP added to what it found."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType
    eps: Static[float]
    activation: Static[str]

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.probe = Param("1 1 D", self.T)
        self.q_proj = Linear(self.D, self.D, self.T)
        self.k_proj = Linear(self.D, self.D, self.T)
        self.v_proj = Linear(self.D, self.D, self.T)
        self.out_proj = Linear(self.D, self.D, self.T)
        self.norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.mlp = Mlp(self.D, self.Inner, self.T, activation=self.activation)

    def forward(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B D"]:
        """States where the mask is False are not seen."""
        B, N = mask.shape
        query = broadcast_to(self.probe, (B, 1, self.D))
        projected = (self.q_proj(query), self.k_proj(x), self.v_proj(x))
        q, k, v = (split_heads(p, self.Heads) for p in projected)
        found = self.out_proj(merge_heads(attention(q, k, v, mask=mask.reshape(B, 1, 1, N))))
        found = found.reshape(B, self.D)
        return found + self.mlp(self.norm(found))


class Vision(Block):
    """A vision transformer whose states are pooled by attention."""

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
    eps: Static[float]
    activation: Static[str]

    def build(self) -> None:
        rows, columns = self.Height // self.Patch, self.Width // self.Patch
        self.Patches = rows * columns
        self.patches = PatchEmbedding(self.Height, self.Width, self.Channels, self.Patch, self.D, self.T)
        self.positions = PatchPositions(self.Grid, rows, columns, self.D, self.T)
        self.layers = block_array(
            self.Layers,
            lambda i: PreNormLayer(
                self.D, self.Heads, self.Inner, self.T, eps=self.eps, activation=self.activation
            ),
        )
        self.norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.pool = AttentionPool(self.D, self.Heads, self.Inner, self.T, self.eps, self.activation)

    def forward(
        self, pixels: Float[Tensor, "B Channels Height Width"], mask: Bool[Tensor, "B Patches"]
    ) -> Float[Tensor, "B D"]:
        x = self.patches(pixels) + self.positions()
        for layer in self.layers:
            x = layer(x, mask)
        return self.pool(self.norm(x), mask)


class Text(Block):
    """A transformer that sees every place, padding too, since it was trained so; the last state stands for the text."""

    Vocab: Dim
    MaxTokens: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    Joint: Dim
    T: DType
    eps: Static[float]
    activation: Static[str]

    def build(self) -> None:
        self.token_embedding = Param("Vocab D", self.T)
        self.positions = Param("MaxTokens D", self.T)
        self.layers = block_array(
            self.Layers,
            lambda i: PreNormLayer(
                self.D, self.Heads, self.Inner, self.T, eps=self.eps, activation=self.activation
            ),
        )
        self.norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.head = Linear(self.D, self.Joint, self.T)

    def forward(self, tokens: Int32[Tensor, "B MaxTokens"]) -> Float[Tensor, "B Joint"]:
        B, S = tokens.shape
        x = take(self.token_embedding, tokens) + self.positions
        everything = full((B, S), True, "bool")
        for layer in self.layers:
            x = layer(x, everything)
        return self.head(self.norm(slice(x, 1, S - 1, S).reshape(B, self.D)))


class Model(Block):
    """Both encoders; a text's last layer makes it as wide as a picture."""

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
    T: DType
    eps: Static[float] = 1e-6
    activation: Static[str] = "gelu_tanh"

    def build(self) -> None:
        self.Patches = self.Height // self.Patch * (self.Width // self.Patch)
        self.vision = Vision(
            self.Height, self.Width, self.Channels, self.Patch, self.Grid, self.VisionD, self.VisionHeads,
            self.VisionInner, self.VisionLayers, self.T, self.eps, self.activation,
        )  # fmt: skip
        self.text = Text(
            self.Vocab, self.MaxTokens, self.TextD, self.TextHeads, self.TextInner, self.TextLayers, self.VisionD,
            self.T, self.eps, self.activation,
        )  # fmt: skip
        # Trained as a logarithm.
        self.logit_scale = Param("1", self.T)
        self.logit_bias = Param("1", self.T)

    @entry
    def embed_image(
        self,
        pixels: Float[Tensor, "B Channels Height Width"],
        mask: Bool[Tensor, "B Patches"] = Fill("1"),
    ) -> Float[Tensor, "B VisionD"]:
        """A vector of length one for each picture; patches where the mask is False are not seen."""
        return self.unit(self.vision(pixels, mask))

    @entry
    def embed_text(self, tokens: Int32[Tensor, "B MaxTokens"]) -> Float[Tensor, "B VisionD"]:
        """A vector of length one for each text, filled up with the padding token to the full length."""
        return self.unit(self.text(tokens))

    @entry
    def similarity(
        self, images: Float[Tensor, "N VisionD"], texts: Float[Tensor, "M VisionD"]
    ) -> Float[Tensor, "N M"]:
        """Logits of each picture and text, from their vectors."""
        return self.logits(images, texts)

    @entry
    def match(
        self, images: Float[Tensor, "N VisionD"], texts: Float[Tensor, "M VisionD"]
    ) -> Float[Tensor, "N M"]:
        """The probability that each picture and text belong together, whatever the others are."""
        return sigmoid(self.logits(images, texts))

    def logits(
        self, images: Float[Tensor, "N VisionD"], texts: Float[Tensor, "M VisionD"]
    ) -> Float[Tensor, "N M"]:
        return linear(images, texts) * exp(self.logit_scale) + self.logit_bias

    def unit(self, x: Float[Tensor, "B VisionD"]) -> Float[Tensor, "B VisionD"]:
        """Of length one; the length is taken in f32."""
        wide = cast(x, "f32")
        return cast(wide * rsqrt(sum(wide * wide, 1, keepdims=True)), self.T)
