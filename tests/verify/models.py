"""Definitions of other families than the zoo's, small enough to be read."""

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
    Tensor,
    attention,
    entry,
    linear,
    merge_heads,
    slice,
    split_heads,
    take,
    take_along,
    tanh,
)

GPT = {"D": 12, "Heads": 3, "Vocab": 41, "MaxTokens": 16, "T": "f32"}
BERT = {"D": 12, "Heads": 3, "Vocab": 41, "MaxTokens": 16, "T": "f32"}


class Gpt(Block):
    """One layer over tokens alone, with and without caches; the entries are not in the order of their use."""

    D: Dim
    Heads: Dim
    Vocab: Dim
    MaxTokens: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.require(Capacity <= self.MaxTokens)
        self.wte = Param("Vocab D", self.T)
        self.wpe = Param("MaxTokens D", self.T)
        self.norm = LayerNorm(self.D, self.T)
        self.q = Linear(self.D, self.D, self.T)
        self.k = Linear(self.D, self.D, self.T)
        self.v = Linear(self.D, self.D, self.T)
        self.cache_k = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)
        self.cache_v = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        B = token.shape[0]
        x = take(self.wte, token) + take(self.wpe, pos.reshape(B, 1))
        h = self.norm(x)
        k = self.cache_k.update(split_heads(self.k(h), self.Heads), pos)
        v = self.cache_v.update(split_heads(self.v(h), self.Heads), pos)
        x = x + merge_heads(attention(split_heads(self.q(h), self.Heads), k, v, pos, causal=True))
        return linear(x, self.wte).reshape(B, self.Vocab)

    @entry
    def prefill(
        self, tokens: Int32[Tensor, "Batch S"], lengths: Int32[Tensor, "Batch"] = Fill("S")
    ) -> Float[Tensor, "Batch Vocab"]:
        B, S = tokens.shape
        self.require(S <= Capacity)
        x = self.embed(tokens)
        h = self.norm(x)
        k, v = split_heads(self.k(h), self.Heads), split_heads(self.v(h), self.Heads)
        self.cache_k.update(k, 0)
        self.cache_v.update(v, 0)
        x = x + merge_heads(attention(split_heads(self.q(h), self.Heads), k, v, causal=True))
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return linear(last, self.wte).reshape(B, self.Vocab)

    @entry
    def forward(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S Vocab"]:
        x = self.embed(tokens)
        h = self.norm(x)
        k, v = split_heads(self.k(h), self.Heads), split_heads(self.v(h), self.Heads)
        x = x + merge_heads(attention(split_heads(self.q(h), self.Heads), k, v, causal=True))
        return linear(x, self.wte)

    def embed(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        S = tokens.shape[1]
        self.require(S <= self.MaxTokens)
        return take(self.wte, tokens) + slice(self.wpe, 0, 0, S)


class Bert(Block):
    """One layer that attends both ways over rows of unequal length, and a pooler over what it gives."""

    D: Dim
    Heads: Dim
    Vocab: Dim
    MaxTokens: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.words = Param("Vocab D", self.T)
        self.kinds = Param("2 D", self.T)
        self.norm = LayerNorm(self.D, self.T)
        self.q = Linear(self.D, self.D, self.T)
        self.dense = Linear(self.D, self.D, self.T)

    @entry
    def encode(
        self,
        tokens: Int32[Tensor, "B S"],
        kinds: Int32[Tensor, "B S"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
    ) -> Float[Tensor, "B S D"]:
        S = tokens.shape[1]
        self.require(S <= self.MaxTokens)
        h = self.norm(take(self.words, tokens) + take(self.kinds, kinds))
        heads = split_heads(self.q(h), self.Heads)
        return h + merge_heads(attention(heads, heads, heads, kv_len=lengths))

    @entry
    def pool(self, states: Float[Tensor, "B S D"]) -> Float[Tensor, "B D"]:
        B = states.shape[0]
        return tanh(self.dense(slice(states, 1, 0, 1))).reshape(B, self.D)
