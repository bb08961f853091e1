"""The decoder of Gemma 2: norms on both sides, softcapped scores and logits, a window in every other layer.

Gemma Team, 2024, "Gemma 2", arXiv 2408.00118.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Fill,
    Float,
    Float32,
    GatedMlp,
    GroupedAttention,
    Int32,
    Param,
    Static,
    Tensor,
    block_array,
    constant,
    entry,
    linear,
    rms_norm,
    rope_frequencies,
    take,
    take_along,
    tanh,
)


class Norm(Block):
    """RMS norm whose gain is 1 + weight; computed in f32, where 1 + weight keeps its last bits."""

    D: Dim
    T: DType
    eps: Static[float] = 1e-6

    def build(self) -> None:
        self.weight = Param("D", self.T, init="zeros")

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        """[*S, D] -> [*S, D]."""
        return rms_norm(x.cast("f32"), self.weight.cast("f32") + 1, eps=self.eps).cast(self.T)


class Layer(Block):
    """A layer that norms what attention and feed-forward read, and what they give."""

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    Inner: Dim
    T: DType
    eps: Static[float]
    scale: Static[float]
    softcap: Static[float | None]
    window: Static[int | None]

    def build(self) -> None:
        self.attention_norm = Norm(self.D, self.T, eps=self.eps)
        self.attention = GroupedAttention(
            self.D,
            self.Heads,
            self.KvHeads,
            self.HeadDim,
            self.T,
            window=self.window,
            scale=self.scale,
            softcap=self.softcap,
        )
        self.attention_out_norm = Norm(self.D, self.T, eps=self.eps)
        self.mlp_norm = Norm(self.D, self.T, eps=self.eps)
        self.mlp = GatedMlp(self.D, self.Inner, self.T, activation="gelu_tanh")
        self.mlp_out_norm = Norm(self.D, self.T, eps=self.eps)

    def forward(self, x: Float[Tensor, "B S D"], inv_freq: Float32[Tensor, "R"]) -> Float[Tensor, "B S D"]:
        """Without caches: the whole of each row."""
        x = x + self.attention_out_norm(self.attention(self.attention_norm(x), inv_freq))
        return x + self.mlp_out_norm(self.mlp(self.mlp_norm(x)))

    def prefill(
        self, x: Float[Tensor, "Batch S D"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        x = x + self.attention_out_norm(self.attention.prefill(self.attention_norm(x), inv_freq))
        return x + self.mlp_out_norm(self.mlp(self.mlp_norm(x)))

    def step(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        x = x + self.attention_out_norm(self.attention.step(self.attention_norm(x), pos, inv_freq))
        return x + self.mlp_out_norm(self.mlp(self.mlp_norm(x)))


class Model(Block):
    """The whole network.

    Args:
        scalar: scores are divided by its root; the library's `query_pre_attn_scalar`.
        scores_cap, logits_cap: of scores and of logits.
        window: of layers 0, 2, 4, ...; the others see everything.
    """

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    Inner: Dim
    Layers: Dim
    Vocab: Dim
    MaxTokens: Dim
    T: DType
    rope_theta: Static[float] = 10000.0
    eps: Static[float] = 1e-6
    scalar: Static[float] = 256.0
    scores_cap: Static[float] = 50.0
    logits_cap: Static[float] = 30.0
    window: Static[int] = 4096

    def build(self) -> None:
        self.require(Capacity <= self.MaxTokens)
        self.frequencies = rope_frequencies(int(self.HeadDim), self.rope_theta)
        self.token_embedding = Param("Vocab D", self.T)
        self.layers = block_array(
            self.Layers,
            lambda i: Layer(
                self.D,
                self.Heads,
                self.KvHeads,
                self.HeadDim,
                self.Inner,
                self.T,
                eps=self.eps,
                scale=self.scalar**-0.5,
                softcap=self.scores_cap,
                window=None if i % 2 else self.window,
            ),
        )
        self.norm = Norm(self.D, self.T, eps=self.eps)

    @entry
    def forward(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S Vocab"]:
        """Logits at every position, without caches."""
        self.require(tokens.shape[1] <= self.MaxTokens)
        x = self.embedded(tokens)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer(x, inv_freq)
        return self.logits(x)

    @entry
    def prefill(
        self, tokens: Int32[Tensor, "Batch S"], lengths: Int32[Tensor, "Batch"] = Fill("S")
    ) -> Float[Tensor, "Batch Vocab"]:
        """Put prompts into the caches from slot 0; logits after the last token of each row."""
        B, S = tokens.shape
        self.require(S <= Capacity)
        x = self.embedded(tokens)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer.prefill(x, inv_freq)
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return self.logits(last).reshape(B, self.Vocab)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        """One more token of each row, at slot `pos`; logits after it."""
        x = self.embedded(token)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer.step(x, pos, inv_freq)
        return self.logits(x).reshape(token.shape[0], self.Vocab)

    def embedded(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        return take(self.token_embedding, tokens) * int(self.D) ** 0.5

    def logits(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S Vocab"]:
        return tanh(linear(self.norm(x), self.token_embedding) / self.logits_cap) * self.logits_cap
