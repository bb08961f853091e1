"""GPT-2: a pre-norm decoder with learned positions, whose output head is its token embedding.

Radford et al., 2019, "Language Models are Unsupervised Multitask Learners".
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Fill,
    Float,
    Int32,
    LayerNorm,
    Linear,
    Param,
    State,
    Static,
    Tensor,
    attention,
    block_array,
    entry,
    gelu,
    linear,
    merge_heads,
    slice,
    split_heads,
    take,
    take_along,
)


class Attention(Block):
    """Causal self-attention with biases on all four projections; a session keeps keys and values."""

    D: Dim
    Heads: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.q_proj = Linear(self.D, self.D, self.T)
        self.k_proj = Linear(self.D, self.D, self.T)
        self.v_proj = Linear(self.D, self.D, self.T)
        self.out_proj = Linear(self.D, self.D, self.T)
        self.k_cache = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)
        self.v_cache = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)

    def forward(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        """Without caches: place i of a row sees places 0 to i."""
        q, k, v = self.heads(x)
        return self.out_proj(merge_heads(attention(q, k, v, causal=True)))

    def prefill(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        q, k, v = self.heads(x)
        # What a shorter row's padding writes is overwritten by its own tokens before any query sees it.
        self.k_cache.update(k, 0)
        self.v_cache.update(v, 0)
        return self.out_proj(merge_heads(attention(q, k, v, causal=True)))

    def step(self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        q, k, v = self.heads(x)
        keys = self.k_cache.update(k, pos)
        values = self.v_cache.update(v, pos)
        return self.out_proj(merge_heads(attention(q, keys, values, pos, causal=True)))

    def heads(
        self, x: Float[Tensor, "B S D"]
    ) -> tuple[
        Float[Tensor, "B Heads S D//Heads"],
        Float[Tensor, "B Heads S D//Heads"],
        Float[Tensor, "B Heads S D//Heads"],
    ]:
        """Queries, keys and values."""
        q = split_heads(self.q_proj(x), self.Heads)
        k = split_heads(self.k_proj(x), self.Heads)
        return q, k, split_heads(self.v_proj(x), self.Heads)


class Mlp(Block):
    """Two linear layers around the tanh form of GELU, which the weights were trained with."""

    D: Dim
    Inner: Dim
    T: DType

    def build(self) -> None:
        self.up = Linear(self.D, self.Inner, self.T)
        self.down = Linear(self.Inner, self.D, self.T)

    def forward(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return self.down(gelu(self.up(x), approximate=True))


class Layer(Block):
    """A pre-norm transformer layer."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType
    eps: Static[float]

    def build(self) -> None:
        self.attention_norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.attention = Attention(self.D, self.Heads, self.T)
        self.mlp_norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.mlp = Mlp(self.D, self.Inner, self.T)

    def forward(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        """Without caches: the whole of each row."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))

    def prefill(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        x = x + self.attention.prefill(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))

    def step(self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        x = x + self.attention.step(self.attention_norm(x), pos)
        return x + self.mlp(self.mlp_norm(x))


class Model(Block):
    """The whole network."""

    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    Vocab: Dim
    MaxTokens: Dim
    T: DType
    eps: Static[float] = 1e-5

    def build(self) -> None:
        self.require(Capacity <= self.MaxTokens)
        self.token_embedding = Param("Vocab D", self.T)
        self.positions = Param("MaxTokens D", self.T)
        self.layers = block_array(
            self.Layers, lambda i: Layer(self.D, self.Heads, self.Inner, self.T, eps=self.eps)
        )
        self.norm = LayerNorm(self.D, self.T, eps=self.eps)

    @entry
    def forward(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S Vocab"]:
        """Logits at every position, without caches."""
        x = self.embed_prefix(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.logits(x)

    @entry
    def prefill(
        self, tokens: Int32[Tensor, "Batch S"], lengths: Int32[Tensor, "Batch"] = Fill("S")
    ) -> Float[Tensor, "Batch Vocab"]:
        """Put prompts into the caches from slot 0; logits after the last token of each row."""
        B, S = tokens.shape
        self.require(S <= Capacity)
        x = self.embed_prefix(tokens)
        for layer in self.layers:
            x = layer.prefill(x)
        # The head is a third of the work, so only for the position whose logits are asked for.
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return self.logits(last).reshape(B, self.Vocab)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        """One more token of each row, at slot `pos`; logits after it."""
        B = token.shape[0]
        x = take(self.token_embedding, token) + take(self.positions, pos.reshape(B, 1))
        for layer in self.layers:
            x = layer.step(x, pos)
        return self.logits(x).reshape(B, self.Vocab)

    def embed_prefix(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        S = tokens.shape[1]
        self.require(S <= self.MaxTokens)
        return take(self.token_embedding, tokens) + slice(self.positions, 0, 0, S)

    def logits(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S Vocab"]:
        return linear(self.norm(x), self.token_embedding)
