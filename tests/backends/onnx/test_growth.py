"""Caches in a loop: those that may, grow by a slot a trip; the others are carried whole. Results are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Float,
    Int32,
    Linear,
    State,
    Static,
    Tensor,
    attention,
    entry,
    full,
    merge_heads,
    split_heads,
    sum,
    while_loop,
)


class Layer(Block):
    """Attention over what it wrote before, and in some ways over more than that."""

    D: Dim
    Heads: Dim
    T: DType
    way: Static[str]

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.up = Linear(self.D, self.D, self.T)
        self.k = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)
        self.v = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)

    def forward(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch 1 D"]:
        h = split_heads(self.up(x), self.Heads)
        at = pos + 1 if self.way == "another slot" else pos
        k, v = self.k.update(h, at), self.v.update(h * 0.5, at)
        if self.way == "sees all":
            return merge_heads(attention(h, k, v))
        if self.way == "by length":
            return merge_heads(attention(h, k, v, kv_len=pos + 1))
        y = attention(h, k, v, at, causal=True, window=3 if self.way == "window" else None)
        if self.way == "read again":
            y = y + sum(self.k.read() + self.v.read(), 2, keepdims=True)
        if self.way == "looked at":
            y = y + sum(k + v, 2, keepdims=True)
        return merge_heads(y)


class Decoder(Block):
    """A loop over two layers, from slots of the rows' own."""

    D: Dim
    Heads: Dim
    T: DType
    way: Static[str] = "plain"

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.require(Capacity <= 13)
        self.first = Layer(self.D, self.Heads, self.T, self.way)
        self.second = Layer(self.D, self.Heads, self.T, self.way)

    @entry
    def prefill(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        h = split_heads(x, self.Heads)
        for layer in (self.first, self.second):
            layer.k.update(h, 0)
            layer.v.update(h * 2.0, 0)
        return x

    @entry
    def go(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"], trips: Int32[Tensor, ""]
    ) -> tuple[Float[Tensor, "Batch 1 D"], Int32[Tensor, "Batch"]]:
        _, y, after, _ = while_loop(self, _more, _trip, [full((), 0, "i32"), x, pos, trips], max_trips=9)
        return y, after

    @entry
    def whole(
        self, x: Float[Tensor, "Batch S D"], first: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"],
        trips: Int32[Tensor, ""],
    ) -> Float[Tensor, "Batch 1 D"]:  # fmt: skip
        self.prefill(x)
        return self.go(first, pos, trips)[0]

    @entry
    def step(self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch 1 D"]:
        return self.second(self.first(x, pos), pos)


def _more(block: Any, n: Tensor, x: Tensor, pos: Tensor, trips: Tensor) -> Tensor:
    return n < trips


def _trip(block: Any, n: Tensor, x: Tensor, pos: Tensor, trips: Tensor) -> tuple[Tensor, ...]:
    y = block.second(block.first(x, pos), pos)
    return n + 1, y + x * 0.5, pos + 1, trips


WAYS = {
    "plain": True,
    "window": True,
    "another slot": False,
    "sees all": False,
    "by length": False,
    "read again": False,
    "looked at": False,
}
"""Ways of attending, and whether caches may grow with it."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("starts", [[2, 2], [4, 1], [0, 3]])
def test_it_is_as_if_they_were_whole(way: str, starts: list[int], pair: Callable[..., Any]) -> None:
    model, oracle = pair(Decoder, D=6, Heads=2, way=way)
    sessions = [
        model.new_session(Batch=2, Capacity=13, plan="fast"),
        oracle.new_session(Batch=2, Capacity=13),
    ]
    rng = np.random.default_rng(2)
    prompt, x = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 1, 6))
    for trips in (0, 1, 5):
        calls = [
            ("whole", [prompt, x, starts, trips]),
            # What a loop left is what the next one begins with, and single steps go on from.
            ("go", [x, [s + trips for s in starts], 2]),
            ("step", [x, [s + trips + 2 for s in starts]]),
        ]
        for name, arguments in calls:
            got, want = (s.run_entry(name, arguments) for s in sessions)
            for a, b in zip(*((y if isinstance(y, tuple) else (y,)) for y in (got, want)), strict=True):
                assert np.abs(a - b).max() <= 1e-5 * max(1, np.abs(b).max())


@pytest.mark.parametrize("way", WAYS)
def test_which_may_grow(way: str, pair: Callable[..., Any]) -> None:
    model, _ = pair(Decoder, D=6, Heads=2, way=way)
    graph = model.new_session(plan="fast").runtime.lowered("go").model.graph
    (loop,) = [n for n in graph if n.op_type == "Loop"]
    carried = [v.shape[2] for v in loop.attributes["body"].as_graph().inputs if len(v.shape or ()) == 4]
    assert len(carried) == 4
    assert [str(size) != "Capacity" for size in carried] == [WAYS[way]] * 4


def test_what_is_exact_stays_as_it_is_written(pair: Callable[..., Any]) -> None:
    model, _ = pair(Decoder, D=6, Heads=2)
    (loop,) = [n for n in model.graph("go").graph if n.op_type == "Loop"]
    sizes = [str(v.shape[2]) for v in loop.attributes["body"].as_graph().inputs if len(v.shape or ()) == 4]
    assert sizes == ["Capacity"] * 4
