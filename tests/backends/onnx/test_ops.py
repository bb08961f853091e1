"""Every op on ONNX Runtime against the oracle, with all of the runtime's optimizations and with none."""

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

from nest.backends.onnx.rules import RULES
from nest.errors import CallError
from nest.layers import ops

_SPEC = importlib.util.spec_from_file_location("op_cases", Path(__file__).parents[1] / "op_cases.py")
assert _SPEC is not None and _SPEC.loader is not None  # noqa: PT018
op_cases: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["op_cases"] = op_cases
_SPEC.loader.exec_module(op_cases)

COMPOSED = {"stack"}
OF_PLANS = {"peak_of_product", "quantized_linear"}
"""Ops that a pass makes, and no definition."""

LOWERED = {"while_loop"}  # not by a rule
CASES = op_cases.CASES


def test_every_op_has_a_rule_and_every_rule_an_op() -> None:
    assert set(ops.__all__) - COMPOSED - LOWERED == set(RULES) - OF_PLANS


@pytest.mark.parametrize("level", ["none", "all"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_an_op_agrees_with_the_oracle(case: Any, level: str, pair: Callable[..., Any]) -> None:
    model, oracle = pair(case.root, session_options={"graph_optimization_level": level}, **case.generics)
    for seed in range(3):
        inputs = case.inputs(np.random.default_rng(seed))
        results, exact = model.go(*inputs), oracle.go(*inputs)
        assert len(results) == len(exact)
        for position, (got, want) in enumerate(zip(results, exact, strict=True)):
            assert got.shape == want.shape, position
            assert got.dtype == np.dtype({"f": "f4", "i": "i4", "b": "?"}[want.dtype.kind]), position
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5, err_msg=f"result {position}")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_checker_accepts_every_graph(case: Any, pair: Callable[..., Any]) -> None:
    model, _ = pair(case.root, **case.generics)
    onnx.checker.check_model(ir.to_proto(model.graph("go")), full_check=True)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_half_precision_stays_near(case: Any, pair: Callable[..., Any]) -> None:
    inputs = case.inputs(np.random.default_rng(0))
    _, oracle = pair(case.root, **case.generics)
    model, _ = pair(case.root, T="f16", **case.generics)
    for got, want in zip(model.go(*inputs), oracle.go(*inputs), strict=True):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got.astype(np.float64), want, rtol=0.02, atol=0.02)


def test_bf16_is_refused(pair: Callable[..., Any]) -> None:
    with pytest.raises(CallError, match=r"does not compute in bf16, .* dtype='f32' or dtype='f16'"):
        pair(CASES[0].root, T="bf16")
