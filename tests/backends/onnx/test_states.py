"""States: written where they lie, or in a second memory where that would be wrong; a failed write is no secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nest.backends.onnx.lower import lower
from nest.backends.onnx.weights import WeightFiles
from nest.errors import CallError
from nest.layers import (
    Block,
    Capacity,
    DType,
    Float,
    Int32,
    Param,
    State,
    Static,
    Tensor,
    concat,
    einsum,
    elaborate,
    entry,
    slice,
    take,
)


class Caches(Block):
    """A cache in each order of rows and slots."""

    T: DType
    axes: Static[str]
    rows: Static[int]
    slots: Static[int]

    def build(self) -> None:
        self.require(Capacity <= 9)
        self.cache = State(self.axes, self.T, batch_axis=self.rows, write_axis=self.slots)

    @entry
    def write(self, x: Float[Tensor, "Batch S 3"], pos: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch S 3"]:
        self.cache.update(self.turned(x), pos)
        return x

    @entry
    def put(self, x: Float[Tensor, "Batch S 3"]) -> Float[Tensor, "Batch S 3"]:
        self.cache.update(self.turned(x), 2)
        return x * 2.0

    @entry
    def twice(
        self, x: Float[Tensor, "Batch S 3"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Capacity 3"]:
        self.cache.update(self.turned(x), 0)
        return self.turned_back(self.cache.update(self.turned(x + 1.0), pos))

    @entry
    def look(self, n: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch Capacity 3"]:
        return self.turned_back(self.cache.read())

    def turned(self, x: Tensor):
        order = [0, 0, 0]
        order[self.rows], order[self.slots], order[3 - self.rows - self.slots] = 0, 1, 2
        return x.permute(*order)

    def turned_back(self, x: Tensor):
        return x.permute(self.rows, self.slots, 3 - self.rows - self.slots)


ORDERS = [
    ("Batch Capacity 3", 0, 1),
    ("Batch 3 Capacity", 0, 2),
    ("3 Batch Capacity", 1, 2),
    ("Capacity 3 Batch", 2, 0),
]


@pytest.mark.parametrize("level", ["none", "all"])
@pytest.mark.parametrize(("axes", "rows", "slots"), ORDERS, ids=[o[0] for o in ORDERS])
def test_updates_go_to_the_slots_of_each_row(
    axes: str, rows: int, slots: int, level: str, pair: Callable[..., Any]
) -> None:
    options = {"graph_optimization_level": level}
    sessions = [
        m.new_session(Batch=2, Capacity=7)
        for m in pair(Caches, axes=axes, rows=rows, slots=slots, session_options=options)
    ]
    rng = np.random.default_rng(0)
    calls: list[tuple[str, list[Any]]] = [
        ("write", [rng.standard_normal((2, 3, 3)), [4, 0]]),
        ("put", [rng.standard_normal((2, 2, 3))]),
        ("write", [rng.standard_normal((2, 1, 3)), 6]),
        ("look", [[0, 0]]),
        ("twice", [rng.standard_normal((2, 2, 3)), [1, 5]]),
        ("look", [[0, 0]]),
    ]
    for name, arguments in calls:
        got, want = (s.run_entry(name, arguments) for s in sessions)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6, err_msg=name)
    got, want = (s.state["cache"] for s in sessions)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def test_an_update_is_made_in_place(pair: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    options = {"log_severity_level": 2}  # at which the runtime says that it copies
    model, _ = pair(Caches, axes="Batch Capacity 3", rows=0, slots=1, session_options=options)
    session = model.new_session()
    session.write(np.ones((1, 2, 3)), 1)
    assert "in-place" not in capfd.readouterr().err
    feed = {"x": np.ones((1, 2, 3), "f4"), "pos": np.zeros(1, "i4"), "past.cache": np.zeros((1, 9, 3), "f4")}
    model.runtime.entry("write").session.run(None, feed)
    assert "in-place optimization not activated" in capfd.readouterr().err


class Window(Block):
    """A state that is read, computed with and assigned: the last three inputs, mixed."""

    T: DType

    def build(self) -> None:
        self.mix = Param("3 3", self.T)
        self.past = State("Batch 3 4", self.T)
        self.total = State("Batch 4", self.T)

    @entry
    def push(
        self, x: Float[Tensor, "Batch 1 4"]
    ) -> tuple[Float[Tensor, "Batch 3 4"], Float[Tensor, "Batch 4"]]:
        old = self.past.read()
        kept = old * 1.0
        new = einsum("ij,bjd->bid", self.mix, concat([slice(old, 1, 1, 3), x], axis=1))
        sums = self.total.read() + x.reshape(x.shape[0], 4)
        late = slice(kept, 1, 0, 1).reshape(x.shape[0], 4)
        self.past.assign(new)
        self.total.assign(sums)
        return kept, late

    @entry
    def reset(self, x: Float[Tensor, "Batch 3 4"]) -> Float[Tensor, "Batch 3 4"]:
        self.total.assign(slice(x, 1, 0, 1).reshape(x.shape[0], 4))
        return self.past.assign(x)

    @entry
    def first(self, i: Int32[Tensor, "1"]) -> Float[Tensor, "1 3 4"]:
        return take(self.past.read(), i)


@pytest.mark.parametrize("level", ["none", "all"])
def test_a_state_that_is_read_and_assigned_keeps_its_old_content_until_the_end(
    level: str, pair: Callable[..., Any]
) -> None:
    sessions = [
        m.new_session(Batch=2) for m in pair(Window, session_options={"graph_optimization_level": level})
    ]
    rng = np.random.default_rng(1)
    kept = []
    for step in range(6):
        name, shape = ("reset", (2, 3, 4)) if step == 3 else ("push", (2, 1, 4))
        x = rng.standard_normal(shape).astype("f4")
        got, want = (s.run_entry(name, [x]) for s in sessions)
        results = list(zip(got, want, strict=True)) if name == "push" else [(got, want)]
        kept += results
        for path in ("past", "total"):
            got, want = (s.state[path] for s in sessions)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5, err_msg=f"{step} {path}")
    for got, want in kept:  # after all calls: no result is a view of what they wrote
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_where_a_state_may_be_written_in_place() -> None:
    def ports(root: type[Block], name: str, **generics: Any) -> dict[str, Any]:
        program = elaborate(root, T="f32", **generics)
        specs = {"mix": np.eye(3, dtype="f4")} if root is Window else {}
        from nest.ir.inventory import parameters

        return {
            p.path: p for p in lower(program, name, WeightFiles(parameters(program), specs).tensor).states
        }

    order = {"axes": "Batch Capacity 3", "rows": 0, "slots": 1}
    assert ports(Caches, "write", **order)["cache"].in_place
    assert ports(Caches, "twice", **order)["cache"].in_place
    assert not ports(Caches, "write", axes="3 Batch Capacity", rows=1, slots=2)["cache"].in_place
    push, reset = ports(Window, "push"), ports(Window, "reset")
    assert not push["past"].in_place
    assert not push["total"].in_place
    assert reset["past"].in_place
    assert reset["past"].input is None
    assert ports(Window, "first")["past"].output is None


def test_looking_at_a_state_copies_it(pair: Callable[..., Any]) -> None:
    session = pair(Window)[0].new_session()
    session.reset(np.ones((1, 3, 4)))
    before = session.state["past"]
    session.reset(np.zeros((1, 3, 4)))
    assert (before == 1).all()
    before[:] = 5
    assert (session.state["past"] == 0).all()


class Table(Block):
    """Writes a state, and picks a row by an index that the host does not see."""

    T: DType

    def build(self) -> None:
        self.kept = State("Batch 3", self.T)

    @entry
    def write(self, x: Float[Tensor, "Batch 3"], i: Int32[Tensor, "1"]) -> Float[Tensor, "1 3"]:
        return take(self.kept.assign(x), i * i)

    @entry
    def rows(self, i: Int32[Tensor, "1"]) -> Float[Tensor, "1 3"]:
        return take(self.kept.read(), i * i)


def test_a_failed_write_ends_the_session(pair: Callable[..., Any]) -> None:
    model, _ = pair(Table)
    session, other = model.new_session(), model.new_session()
    with pytest.raises(
        CallError, match=r"^Table.write failed in ONNX Runtime: .*idx=9 must be within .*\]\.$"
    ):
        session.write(np.ones((1, 3)), [3])
    with pytest.raises(CallError, match=r"are lost: .write. failed while it wrote them .*new_session"):
        session.rows([0])
    assert other.write(np.ones((1, 3)), [0]).shape == (1, 3)


def test_a_failed_read_leaves_the_session_alone(pair: Callable[..., Any]) -> None:
    session = pair(Table)[0].new_session()
    with pytest.raises(CallError, match=r"Table.rows failed .*idx=4 must be within"):
        session.rows([2])
    assert session.rows([0]).shape == (1, 3)


def test_the_default_session_is_emptied_by_a_failed_write(pair: Callable[..., Any]) -> None:
    model, _ = pair(Table)
    assert (model.write(np.ones((1, 3)), [0]) == 1).all()
    with pytest.raises(CallError, match="The model's default session has been emptied"):
        model.write(np.ones((1, 3)), [5])
    assert (model.rows([0]) == 0).all()
