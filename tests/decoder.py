"""A small decoder with lively random weights on every backend, for tests of loops and of text generation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import nest
from nest.ir.inventory import parameters
from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Fill,
    Float,
    Int32,
    Linear,
    Param,
    RMSNorm,
    State,
    Tensor,
    attention,
    block_array,
    entry,
    linear,
    merge_heads,
    silu,
    slice,
    split_heads,
    take,
    take_along,
)
from nest.weights.random import random_parameters

Array = np.ndarray[Any, Any]

BACKENDS = ("torch", "jax", "nnx", "onnx", "reference")
SMALL: dict[str, Any] = {
    "D": 12, "Heads": 6, "KvHeads": 3, "HeadDim": 4, "Inner": 20, "Layers": 2, "Vocab": 300,
    "MaxTokens": 64,
}  # fmt: skip
VOCAB, CAPACITY = SMALL["Vocab"], SMALL["MaxTokens"]


class Layer(Block):
    """A pre-norm layer with grouped heads."""

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    Inner: Dim
    T: DType

    def build(self) -> None:
        self.require(self.Heads % self.KvHeads == 0)
        self.norm = RMSNorm(self.D, self.T)
        self.q = Linear(self.D, self.Heads * self.HeadDim, self.T, bias=False)
        self.k = Linear(self.D, self.KvHeads * self.HeadDim, self.T, bias=False)
        self.v = Linear(self.D, self.KvHeads * self.HeadDim, self.T, bias=False)
        self.o = Linear(self.Heads * self.HeadDim, self.D, self.T, bias=False)
        self.up = Linear(self.D, self.Inner, self.T)
        self.down = Linear(self.Inner, self.D, self.T)
        self.keys = State("Batch KvHeads Capacity HeadDim", self.T, write_axis=2)
        self.values = State("Batch KvHeads Capacity HeadDim", self.T, write_axis=2)

    def prefill(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        h = self.norm(x)
        k, v = split_heads(self.k(h), self.KvHeads), split_heads(self.v(h), self.KvHeads)
        self.keys.update(k, 0)
        self.values.update(v, 0)
        x = x + self.o(merge_heads(attention(split_heads(self.q(h), self.Heads), k, v, causal=True)))
        return x + self.down(silu(self.up(x)))

    def step(self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch 1 D"]:
        h = self.norm(x)
        k = self.keys.update(split_heads(self.k(h), self.KvHeads), pos)
        v = self.values.update(split_heads(self.v(h), self.KvHeads), pos)
        x = x + self.o(merge_heads(attention(split_heads(self.q(h), self.Heads), k, v, pos, causal=True)))
        return x + self.down(silu(self.up(x)))


class Decoder(Block):
    """Tokens in, logits out."""

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    Inner: Dim
    Layers: Dim
    Vocab: Dim
    MaxTokens: Dim
    T: DType

    def build(self) -> None:
        self.require(Capacity <= self.MaxTokens)
        self.embedding = Param("Vocab D", self.T)
        self.positions = Param("MaxTokens D", self.T)
        self.layers = block_array(
            self.Layers, lambda i: Layer(self.D, self.Heads, self.KvHeads, self.HeadDim, self.Inner, self.T)
        )
        self.norm = RMSNorm(self.D, self.T)

    @entry
    def prefill(
        self, tokens: Int32[Tensor, "Batch S"], lengths: Int32[Tensor, "Batch"] = Fill("S")
    ) -> Float[Tensor, "Batch Vocab"]:
        B, S = tokens.shape
        self.require(S <= Capacity)
        self.require(S <= self.MaxTokens)
        x = take(self.embedding, tokens) + slice(self.positions, 0, 0, S)
        for layer in self.layers:
            x = layer.prefill(x)
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return linear(self.norm(last), self.embedding).reshape(B, self.Vocab)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        B = token.shape[0]
        x = take(self.embedding, token) + take(self.positions, pos.reshape(B, 1))
        for layer in self.layers:
            x = layer.step(x, pos)
        return linear(self.norm(x), self.embedding).reshape(B, self.Vocab)


@cache
def weights() -> dict[str, Array]:
    """Weights under which the next token depends on all before it, so that rows differ and some end early."""
    reference = nest.load(Decoder, backend="reference", weights=None, **SMALL)
    rng = np.random.default_rng(1)
    drawn = random_parameters(parameters(reference.program), seed=7)
    return {
        p: np.asarray(a * 12 if a.ndim > 1 else a + 0.2 * rng.standard_normal(a.shape), np.float32)
        for p, a in drawn.items()
    }


@cache
def decoder_on(backend: str, **options: Any) -> Any:
    """The model on a backend; all tests of a run share it."""
    return nest.load(Decoder, backend=backend, weights=weights(), **SMALL, **options)
