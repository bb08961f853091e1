"""The decoder of OLMo 2: what a layer adds is normed, not what it reads.

Team OLMo, 2024, "2 OLMo 2 Furious", arXiv 2501.00656.
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
    rope,
    rope_frequencies,
    take,
    take_along,
)


class Attention(GroupedAttention):
    """Grouped attention whose queries and keys are each normed over all heads together, before they are turned.

    Args:
        eps: of both norms.
    """

    eps: Static[float] = 1e-6

    def build(self) -> None:
        super().build()
        self.q_norm = RMSNorm(self.Heads * self.HeadDim, self.T, eps=self.eps)
        self.k_norm = RMSNorm(self.KvHeads * self.HeadDim, self.T, eps=self.eps)

    def heads(
        self, x: Float[Tensor, "B S D"], pos: Int32[Tensor, "B"], inv_freq: Float32[Tensor, "R"]
    ) -> tuple[
        Float[Tensor, "B Heads S HeadDim"],
        Float[Tensor, "B KvHeads S HeadDim"],
        Float[Tensor, "B KvHeads S HeadDim"],
    ]:
        """Queries and keys, turned by their positions pos, pos+1, ..., and values."""
        B, S, _ = x.shape
        q = self.q_norm(self.q_proj(x)).reshape(B, S, self.Heads, self.HeadDim).permute(0, 2, 1, 3)
        k = self.k_norm(self.k_proj(x)).reshape(B, S, self.KvHeads, self.HeadDim).permute(0, 2, 1, 3)
        v = self.v_proj(x).reshape(B, S, self.KvHeads, self.HeadDim).permute(0, 2, 1, 3)
        return rope(q, pos, inv_freq), rope(k, pos, inv_freq), v


class Layer(Block):
    """A transformer layer that norms what attention and feed-forward give, before it is added."""

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    Inner: Dim
    T: DType
    eps: Static[float]

    def build(self) -> None:
        self.attention = Attention(self.D, self.Heads, self.KvHeads, self.HeadDim, self.T, eps=self.eps)
        self.attention_norm = RMSNorm(self.D, self.T, eps=self.eps)
        self.mlp = GatedMlp(self.D, self.Inner, self.T)
        self.mlp_norm = RMSNorm(self.D, self.T, eps=self.eps)

    def forward(self, x: Float[Tensor, "B S D"], inv_freq: Float32[Tensor, "R"]) -> Float[Tensor, "B S D"]:
        """Without caches: the whole of each row."""
        x = x + self.attention_norm(self.attention(x, inv_freq))
        return x + self.mlp_norm(self.mlp(x))

    def prefill(
        self, x: Float[Tensor, "Batch S D"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        x = x + self.attention_norm(self.attention.prefill(x, inv_freq))
        return x + self.mlp_norm(self.mlp(x))

    def step(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        x = x + self.attention_norm(self.attention.step(x, pos, inv_freq))
        return x + self.mlp_norm(self.mlp(x))


class Model(Block):
    """The whole network.

    Args:
        eps: of every norm.
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
    rope_theta: Static[float] = 500000.0
    eps: Static[float] = 1e-6

    def build(self) -> None:
        self.require(Capacity <= self.MaxTokens)
        self.frequencies = rope_frequencies(int(self.HeadDim), self.rope_theta)
        self.token_embedding = Param("Vocab D", self.T)
        self.layers = block_array(
            self.Layers,
            lambda i: Layer(self.D, self.Heads, self.KvHeads, self.HeadDim, self.Inner, self.T, eps=self.eps),
        )
        self.norm = RMSNorm(self.D, self.T, eps=self.eps)
        self.head = Param("Vocab D", self.T)

    @entry
    def forward(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S Vocab"]:
        """Logits at every position, without caches."""
        self.require(tokens.shape[1] <= self.MaxTokens)
        x = take(self.token_embedding, tokens)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer(x, inv_freq)
        return linear(self.norm(x), self.head)

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
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return linear(self.norm(last), self.head).reshape(B, self.Vocab)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        """One more token of each row, at slot `pos`; logits after it."""
        x = take(self.token_embedding, token)
        inv_freq = constant(self.frequencies, "f32")
        for layer in self.layers:
            x = layer.step(x, pos, inv_freq)
        return linear(self.norm(x), self.head).reshape(token.shape[0], self.Vocab)
