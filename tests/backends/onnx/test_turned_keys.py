"""Attention of one query, in a loop, over many keys that are made outside of it: they are turned there, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nest.layers import (
    Block,
    Dim,
    DType,
    Float,
    State,
    Static,
    Tensor,
    attention,
    entry,
    full,
    while_loop,
)


class Looks(Block):
    """A query that is what it saw, again and again."""

    Heads: Dim
    Keys: Dim
    T: DType
    scale: Static[float | None] = None

    def build(self) -> None:
        self.require(self.Heads % 4 == 0)
        self.k = State("Batch 4 Keys 3", self.T)
        self.v = State("Batch 4 Keys 3", self.T)

    @entry
    def listen(self, k: Float[Tensor, "Batch 4 Keys 3"]) -> Float[Tensor, "Batch 4 Keys 3"]:
        self.k.assign(k)
        self.v.assign(k * 2.0)
        return k

    @entry
    def go(
        self, q: Float[Tensor, "Batch Heads 1 3"], own: Float[Tensor, "Batch 4 Keys 3"]
    ) -> Float[Tensor, "Batch Heads 1 3"]:
        return while_loop(self, _more, _look, [full((), 0, "i32"), q, own], max_trips=5)[1]

    @entry
    def step(self, q: Float[Tensor, "Batch Heads 1 3"]) -> Float[Tensor, "Batch Heads 1 3"]:
        return attention(q, self.k.read(), self.v.read(), scale=self.scale)


def _more(block: Any, n: Tensor, q: Tensor, own: Tensor) -> Tensor:
    return n < 3


def _look(block: Any, n: Tensor, q: Tensor, own: Tensor) -> tuple[Tensor, ...]:
    y = attention(q, block.k.read(), block.v.read(), scale=block.scale)
    # What an iteration makes is turned by each, which gains nothing.
    return n + 1, y + attention(q, own, own), own * 0.9


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize(("heads", "keys", "turned"), [(4, 70, 2), (4, 20, 0), (8, 70, 0)])
def test_it_is_as_if_they_were_not(
    scale: float | None, heads: int, keys: int, turned: int, pair: Callable[..., Any]
) -> None:
    model, oracle = pair(Looks, Heads=heads, Keys=keys, scale=scale)
    sessions = [model.new_session(Batch=2, plan="fast"), oracle.new_session(Batch=2)]
    rng = np.random.default_rng(1)
    k, q, own = (
        rng.standard_normal((2, h, n, 3)).astype("f4") for h, n in ((4, keys), (heads, 1), (4, keys))
    )
    for name, given in (("listen", [k]), ("go", [q, own]), ("step", [q])):
        got, want = (s.run_entry(name, given) for s in sessions)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    graph = sessions[0].runtime.lowered("go").model.graph
    (loop,) = [n for n in graph if n.op_type == "Loop"]
    inside = [n.op_type for n in loop.attributes["body"].as_graph()]
    assert [n.op_type for n in graph].count("Transpose") == turned
    assert inside.count("FusedMatMul") == turned
    assert inside.count("Attention") == (1 if turned else 2)
    assert "FusedMatMul" not in [n.op_type for n in sessions[0].runtime.lowered("step").model.graph]
