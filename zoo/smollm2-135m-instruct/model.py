"""The decoder of Llama and its relatives: rotary positions, grouped heads, gated feed-forward layers, RMS norms.

Touvron et al., 2023, "LLaMA", arXiv 2302.13971, and what came of it: Mistral, Phi 3, Qwen 2 and Qwen 3 are this
definition with other static fields.
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
    RMSNorm,
    Static,
    Tensor,
    block_array,
    constant,
    entry,
    linear,
    rope_frequencies,
    take,
    take_along,
)


class Layer(Block):
    """A pre-norm transformer layer."""

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    Inner: Dim
    T: DType
    eps: Static[float]
    qkv_bias: Static[bool]
    qk_norm: Static[bool]
    window: Static[int | None]

    def build(self) -> None:
        self.attention_norm = RMSNorm(self.D, self.T, eps=self.eps)
        self.attention = GroupedAttention(
            self.D,
            self.Heads,
            self.KvHeads,
            self.HeadDim,
            self.T,
            qkv_bias=self.qkv_bias,
            qk_norm=self.eps if self.qk_norm else None,
            window=self.window,
        )
        self.mlp_norm = RMSNorm(self.D, self.T, eps=self.eps)
        self.mlp = GatedMlp(self.D, self.Inner, self.T)

    def forward(self, x: Float[Tensor, "B S D"], inv_freq: Float32[Tensor, "R"]) -> Float[Tensor, "B S D"]:
        """Without caches: the whole of each row."""
        x = x + self.attention(self.attention_norm(x), inv_freq)
        return x + self.mlp(self.mlp_norm(x))

    def prefill(
        self, x: Float[Tensor, "Batch S D"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        x = x + self.attention.prefill(self.attention_norm(x), inv_freq)
        return x + self.mlp(self.mlp_norm(x))

    def step(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        x = x + self.attention.step(self.attention_norm(x), pos, inv_freq)
        return x + self.mlp(self.mlp_norm(x))


class Model(Block):
    """The whole network.

    Args:
        rope_scaling: (factor, low, high, length) of Llama 3.1's longer context; see `rope_frequencies`.
        eps: of every norm.
        tied: the output head is the token embedding.
        qkv_bias, qk_norm, window: see `GroupedAttention`.
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
    rope_scaling: Static[tuple[float, ...] | None] = None
    eps: Static[float] = 1e-5
    qkv_bias: Static[bool] = False
    qk_norm: Static[bool] = False
    window: Static[int | None] = None
    tied: Static[bool] = True

    def build(self) -> None:
        self.require(Capacity <= self.MaxTokens)
        self.frequencies = rope_frequencies(int(self.HeadDim), self.rope_theta, self.rope_scaling)
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
                qkv_bias=self.qkv_bias,
                qk_norm=self.qk_norm,
                window=self.window,
            ),
        )
        self.norm = RMSNorm(self.D, self.T, eps=self.eps)
        self.head = None if self.tied else Param("Vocab D", self.T)

    @entry
    def forward(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S Vocab"]:
        """Logits at every position, without caches."""
        self.require(tokens.shape[1] <= self.MaxTokens)
        x = take(self.token_embedding, tokens)
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
        x = take(self.token_embedding, tokens)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer.prefill(x, inv_freq)
        # The head is a large part of the work, so only for the position whose logits are asked for.
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return self.logits(last).reshape(B, self.Vocab)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        """One more token of each row, at slot `pos`; logits after it."""
        x = take(self.token_embedding, token)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer.step(x, pos, inv_freq)
        return self.logits(x).reshape(token.shape[0], self.Vocab)

    def logits(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S Vocab"]:
        return linear(self.norm(x), self.token_embedding if self.head is None else self.head)
