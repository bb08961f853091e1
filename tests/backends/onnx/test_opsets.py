"""Graphs in older operator sets: every op against the oracle, written over what the set has."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nest.backends.onnx.graph import OPSET, OPSETS
from nest.backends.onnx.lower import lower
from nest.layers import Block, DType, Float, Int32, State, Static, Tensor, attention, entry

_SPEC = importlib.util.spec_from_file_location("op_cases_opsets", Path(__file__).parents[1] / "op_cases.py")
assert _SPEC is not None and _SPEC.loader is not None  # noqa: PT018
op_cases: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["op_cases_opsets"] = op_cases
_SPEC.loader.exec_module(op_cases)

OLDER = sorted(set(OPSETS) - {OPSET})
# Between them they lack everything that a later one brought.
TRIED = (17, 19, 23)


def older_session(model: Any, name: str, opset: int) -> Any:
    """A session of an entry's graph in an older operator set, which onnx's own checker accepts."""
    graph = lower(model.program, name, model.runtime.weights.tensor, opset)
    proto = ir.to_proto(graph.model)
    assert [(d.domain, d.version) for d in proto.opset_import] == [("", opset)]
    onnx.checker.check_model(proto, full_check=True)
    return graph, model.runtime.options.session(proto.SerializeToString(), name)


def run(model: Any, name: str, opset: int, arguments: list[Any]) -> list[Any]:
    graph, session = older_session(model, name, opset)
    types = {
        x.name: np.dtype({"tensor(int32)": "i4", "tensor(bool)": "?"}.get(x.type, "f4"))
        for x in session.get_inputs()
    }
    given = zip(graph.arguments, arguments, strict=True)
    feed = {n: np.asarray(x, types[n]) for n, x in given if n in types}
    return list(session.run(list(graph.results), feed))


@pytest.mark.parametrize("opset", TRIED)
@pytest.mark.parametrize("case", op_cases.CASES, ids=lambda c: c.name)
def test_an_op_in_an_older_set_agrees_with_the_oracle(
    case: Any, opset: int, pair: Callable[..., Any]
) -> None:
    model, oracle = pair(case.root, **case.generics)
    inputs = case.inputs(np.random.default_rng(1))
    for got, want in zip(run(model, "go", opset, inputs), oracle.go(*inputs), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5)


class Window(Block):
    """Attention in which some queries see no key at all."""

    T: DType
    causal: Static[bool]
    window: Static[int | None]

    @entry
    def go(
        self, q: Float[Tensor, "B 4 Q 3"], k: Float[Tensor, "B 2 K 3"], v: Float[Tensor, "B 2 K 5"],
        pos: Int32[Tensor, "B"], kv_len: Int32[Tensor, "B"],
    ) -> Float[Tensor, "B 4 Q 5"]:  # fmt: skip
        if self.causal:
            return attention(q, k, v, pos, causal=True, window=self.window)
        return attention(q, k, v, kv_len=kv_len)


@pytest.mark.parametrize(("causal", "window"), [(True, None), (True, 2), (False, None)])
def test_a_query_that_sees_no_key_gives_zeros(
    causal: bool, window: int | None, pair: Callable[..., Any]
) -> None:
    model, oracle = pair(Window, causal=causal, window=window)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s).astype("f4") for s in ((2, 4, 3, 3), (2, 2, 6, 3), (2, 2, 6, 5)))
    # The second row's queries stand beyond all keys, or its row has none.
    arguments = [q, k, v, np.int32([1, 9]), np.int32([4, 0])]
    want = oracle.go(*arguments)
    (got,) = run(model, "go", 18, arguments)
    np.testing.assert_allclose(got, want, atol=1e-6)
    if window is not None or not causal:
        assert (want[1] == 0).all()


class Cached(Block):
    """A cache that is written at each row's own slot, and one whose rows are not on axis 0."""

    T: DType

    def build(self) -> None:
        self.one = State("Batch 2 5 3", self.T, write_axis=2)
        self.other = State("2 Batch 5", self.T, batch_axis=1, write_axis=2)

    @entry
    def go(
        self, x: Float[Tensor, "Batch 2 S 3"], y: Float[Tensor, "2 Batch S"], pos: Int32[Tensor, "Batch"]
    ) -> tuple[Float[Tensor, "Batch 2 5 3"], Float[Tensor, "2 Batch 5"]]:
        self.one.update(x, 0)
        return self.one.update(x, pos), self.other.update(y, pos)


@pytest.mark.parametrize("opset", OLDER)
def test_a_state_is_written_at_the_slots_of_each_row(opset: int, pair: Callable[..., Any]) -> None:
    model, oracle = pair(Cached)
    graph, session = older_session(model, "go", opset)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 2, 2, 3)).astype("f4"), rng.standard_normal((2, 3, 2)).astype("f4")
    pos = np.int32([0, 3, 2])
    states = {p.input: np.zeros((3, 2, 5, 3) if p.path == "one" else (2, 3, 5), "f4") for p in graph.states}
    got = session.run(["result_0", "result_1", "present.one"], {"x": x, "y": y, "pos": pos, **states})
    want = oracle.new_session(Batch=3).go(x, y, pos)
    np.testing.assert_array_equal(got[0], want[0].astype("f4"))
    np.testing.assert_array_equal(got[1], want[1].astype("f4"))
    np.testing.assert_array_equal(got[2], got[0])
    assert not any(p.in_place for p in graph.states)
