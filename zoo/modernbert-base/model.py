"""ModernBERT: a pre-norm encoder with rotary positions, whose layers look at their neighbourhood or at everything.

Warner et al., 2024, "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient, and
Long Context Finetuning and Inference", arXiv 2412.13663.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Bool,
    Dim,
    DType,
    Fill,
    Float,
    Float32,
    GatedMlp,
    Int32,
    LayerNorm,
    Linear,
    Param,
    Static,
    Tensor,
    abs,
    attention,
    block_array,
    constant,
    entry,
    full,
    gelu,
    iota,
    linear,
    merge_heads,
    rope,
    rope_frequencies,
    split_heads,
    take,
    take_along,
)


class Attention(Block):
    """Multi-head self-attention in both directions, with rotary positions and without biases."""

    D: Dim
    Heads: Dim
    T: DType
    local: Static[bool]

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.query = Linear(self.D, self.D, self.T, bias=False)
        self.key = Linear(self.D, self.D, self.T, bias=False)
        self.value = Linear(self.D, self.D, self.T, bias=False)
        self.output = Linear(self.D, self.D, self.T, bias=False)

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        lengths: Int32[Tensor, "B"],
        near: Bool[Tensor, "1 1 S S"],
        inv_freq: Float32[Tensor, "R"],
    ) -> Float[Tensor, "B S D"]:
        start = full((x.shape[0],), 0, "i32")
        q = rope(split_heads(self.query(x), self.Heads), start, inv_freq)
        k = rope(split_heads(self.key(x), self.Heads), start, inv_freq)
        v = split_heads(self.value(x), self.Heads)
        seen = attention(q, k, v, kv_len=lengths, mask=near if self.local else None)
        return self.output(merge_heads(seen))


class EncoderLayer(Block):
    """A pre-norm layer. The first one's input is normalized already, as the embeddings are."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType
    eps: Static[float]
    local: Static[bool]
    first: Static[bool]

    def build(self) -> None:
        if not self.first:
            self.attention_norm = LayerNorm(self.D, self.T, eps=self.eps, bias=False)
        self.attention = Attention(self.D, self.Heads, self.T, local=self.local)
        self.mlp_norm = LayerNorm(self.D, self.T, eps=self.eps, bias=False)
        self.mlp = GatedMlp(self.D, self.Inner, self.T, activation="gelu")

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        lengths: Int32[Tensor, "B"],
        near: Bool[Tensor, "1 1 S S"],
        inv_freq: Float32[Tensor, "R"],
    ) -> Float[Tensor, "B S D"]:
        h = x if self.first else self.attention_norm(x)
        x = x + self.attention(h, lengths, near, inv_freq)
        return x + self.mlp(self.mlp_norm(x))


class MaskedLM(Block):
    """The encoder, and what stands where a token is masked; the output matrix is the token embedding.

    Args:
        window: a local layer's token sees those up to half as many places away, on either side.
        period: every so many layers, from the first, look at everything.
        global_theta, local_theta: bases of the rotary positions of the two kinds of layer.
        eps: of every norm.
    """

    Vocab: Dim
    MaxTokens: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    T: DType
    window: Static[int] = 128
    period: Static[int] = 3
    global_theta: Static[float] = 160000.0
    local_theta: Static[float] = 10000.0
    eps: Static[float] = 1e-5

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        size = int(self.D // self.Heads)
        self.frequencies = tuple(rope_frequencies(size, t) for t in (self.global_theta, self.local_theta))
        self.local = tuple(i % self.period != 0 for i in range(int(self.Layers)))
        self.token_embedding = Param("Vocab D", self.T)
        self.embedding_norm = LayerNorm(self.D, self.T, eps=self.eps, bias=False)
        self.layers = block_array(
            self.Layers,
            lambda i: EncoderLayer(
                self.D, self.Heads, self.Inner, self.T, self.eps, local=self.local[i], first=i == 0
            ),
        )
        self.final_norm = LayerNorm(self.D, self.T, eps=self.eps, bias=False)
        self.head = Linear(self.D, self.D, self.T, bias=False)
        self.head_norm = LayerNorm(self.D, self.T, eps=self.eps, bias=False)
        self.head_bias = Param("Vocab", self.T, init="zeros")

    @entry
    def encode(
        self, tokens: Int32[Tensor, "B S"], lengths: Int32[Tensor, "B"] = Fill("S")
    ) -> Float[Tensor, "B S D"]:
        """The normalized state of every token. Rows are padded at the end."""
        S = tokens.shape[1]
        self.require(S <= self.MaxTokens)
        place = iota(S)
        near = (abs(place.reshape(1, 1, S, 1) - place.reshape(1, 1, 1, S))) <= self.window // 2
        everywhere, nearby = (constant(f, "f32") for f in self.frequencies)
        x = self.embedding_norm(take(self.token_embedding, tokens))
        for layer, local in zip(self.layers, self.local, strict=True):
            x = layer(x, lengths, near, nearby if local else everywhere)
        return self.final_norm(x)

    @entry
    def mask_logits(
        self, tokens: Int32[Tensor, "B S"], lengths: Int32[Tensor, "B"] = Fill("S")
    ) -> Float[Tensor, "B S Vocab"]:
        """Logits of what stands at every place."""
        return self.predict(self.encode(tokens, lengths))

    @entry
    def mask_logits_at(
        self,
        tokens: Int32[Tensor, "B S"],
        places: Int32[Tensor, "B M"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
    ) -> Float[Tensor, "B M Vocab"]:
        """Logits at some places of each row alone: the head is a large part of the work."""
        B, M = places.shape
        x = self.encode(tokens, lengths)
        return self.predict(take_along(x, places.reshape(B, M, 1), axis=1))

    def predict(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Vocab"]:
        return linear(self.head_norm(gelu(self.head(x))), self.token_embedding, self.head_bias)
