"""Every op on torch against the reference backend."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.layers import ops
from nest.loading import load

_SPEC = importlib.util.spec_from_file_location("op_cases", Path(__file__).parents[1] / "op_cases.py")
assert _SPEC is not None and _SPEC.loader is not None  # noqa: PT018
op_cases: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["op_cases"] = op_cases
_SPEC.loader.exec_module(op_cases)


def test_the_cases_use_every_op() -> None:
    assert set(ops.__all__) - op_cases.used_ops() == {"stack"}  # written over reshape and concat


@pytest.mark.parametrize("case", op_cases.CASES, ids=lambda c: c.name)
def test_an_op_agrees_with_the_oracle(case: Any) -> None:
    inputs = case.inputs(np.random.default_rng(0))
    exact = load(case.root, backend="reference", precision="f64", weights=None, **case.generics).go(*inputs)
    model = load(case.root, backend="torch", weights=None, **case.generics)
    results = model.go(*inputs)
    assert len(results) == len(exact)
    for position, (got, want) in enumerate(zip(results, exact, strict=True)):
        got = got.detach().numpy()
        assert got.shape == want.shape, position
        assert got.dtype.kind == want.dtype.kind, position
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5, err_msg=f"result {position}\n{model.source}")


@pytest.mark.parametrize("case", op_cases.CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_precision_runs_and_stays_near(case: Any, dtype: str) -> None:
    inputs = case.inputs(np.random.default_rng(0))
    exact = load(case.root, backend="reference", precision="f64", weights=None, **case.generics).go(*inputs)
    for got, want in zip(
        load(case.root, backend="torch", weights=None, dtype=dtype, **case.generics).go(*inputs),
        exact,
        strict=True,
    ):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got.detach().float().numpy(), want, rtol=0.05, atol=0.1)
