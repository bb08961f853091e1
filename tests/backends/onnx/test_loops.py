"""Loops: what an iteration does not change stays outside, states are carried, and loops hold loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Float,
    Int32,
    Linear,
    Param,
    State,
    Tensor,
    entry,
    full,
    iota,
    linear,
    where,
    while_loop,
)


def _small(block: Any, n: Tensor, x: Tensor, pos: Tensor, table: Tensor) -> Tensor:
    return n < 4


class Inner(Block):
    """A block with a D of its own, called in the body of a loop."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.up = Linear(self.D, self.D, self.T)
        self.seen = State("Batch Capacity D", self.T, write_axis=1)

    def forward(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Capacity D"]:
        return self.seen.update(self.up(x), pos)


class Writes(Block):
    """A loop that writes two states, one through a child's method."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.require(Capacity <= 8)
        self.inner = Inner(self.D, self.T)
        self.mix = Param("D D", self.T)
        self.total = State("Batch D", self.T)

    @entry
    def go(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"], table: Float[Tensor, "D"]
    ) -> tuple[Float[Tensor, "Batch 1 D"], Int32[Tensor, "Batch"]]:
        _, y, after, _ = while_loop(self, _small, _step, [full((), 1, "i32"), x, pos, table], max_trips=100)
        return y, after

    @entry
    def look(
        self, x: Float[Tensor, "Batch D"]
    ) -> tuple[Float[Tensor, "Batch D"], Float[Tensor, "Batch Capacity D"]]:
        return self.total.read() + x * 0.0, self.inner.seen.read() * 1.0


def _step(block: Any, n: Tensor, x: Tensor, pos: Tensor, table: Tensor) -> tuple[Tensor, ...]:
    B, _, D = x.shape
    block.inner(x, pos)
    block.total.assign(block.total.read() + x.reshape(B, D))
    fixed = linear(table, block.mix).reshape(1, 1, D)
    return n + 1, x * 0.5 + where(pos.reshape(B, 1, 1) < 3, fixed, 0.0), pos + 1, table


@pytest.mark.parametrize("level", ["none", "all"])
def test_states_are_carried_through_a_loop(level: str, pair: Callable[..., Any]) -> None:
    sessions = [
        m.new_session(Batch=2) for m in pair(Writes, D=6, session_options={"graph_optimization_level": level})
    ]
    rng = np.random.default_rng(0)
    for start in ([0, 4], [3, 1]):
        inputs = [rng.standard_normal((2, 1, 6)), start, rng.standard_normal(6)]
        for name, arguments in (("go", inputs), ("look", [np.zeros((2, 6))])):
            for got, want in zip(*(s.run_entry(name, arguments) for s in sessions), strict=True):
                np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_what_no_iteration_changes_is_computed_once(pair: Callable[..., Any]) -> None:
    model, _ = pair(Writes, D=6)
    graph = model.graph("go").graph
    (loop,) = [n for n in graph if n.op_type == "Loop"]
    body = loop.attributes["body"].as_graph()
    inside = [n.op_type for n in body]
    assert inside.count("Gemm") == 1  # the child's; that of the table is outside
    assert "Gemm" in [n.op_type for n in graph]
    assert len(body.inputs) == 2 + 3 + 2  # n, x, pos and two states: the table is not carried
    ports = {p.path: p.in_place for p in model.runtime.entry("go").graph.states}
    assert ports == {"inner.seen": False, "total": False}


def _outer(block: Any, n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    _, y = while_loop(block, _below, _inner, [n * 0, x], max_trips=2)
    return n + 1, y + 1.0


def _below(block: Any, n: Tensor, x: Tensor) -> Tensor:
    return n < 3


def _inner(block: Any, n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return n + 1, x * iota(x.shape[1], block.T) * block.rate


class Nested(Block):
    T: DType

    def build(self) -> None:
        self.rate = 0.5

    @entry
    def go(
        self, x: Float[Tensor, "B N"], start: Int32[Tensor, ""]
    ) -> tuple[Int32[Tensor, ""], Float[Tensor, "B N"]]:
        n, y = while_loop(self, _below, _outer, [start, x], max_trips=5)
        return n, y


@pytest.mark.parametrize("level", ["none", "all"])
@pytest.mark.parametrize("start", [0, 2, 3, -7])
def test_loops_in_loops(start: int, level: str, pair: Callable[..., Any]) -> None:
    model, oracle = pair(Nested, session_options={"graph_optimization_level": level})
    x = np.random.default_rng(1).standard_normal((2, 3)).astype("f4")
    for got, want in zip(model.go(x, start), oracle.go(x, start), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    names = [n.name for n in ir.traversal.RecursiveGraphIterator(model.graph("go").graph)]
    assert len(names) == len(set(names))
