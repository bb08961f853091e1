"""Elementwise rules against torch and math, in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nest.backends.reference.rules import RULES

TORCH: dict[str, Any] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu,
    "relu": torch.relu,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "power": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "equal": torch.eq,
    "less": torch.lt,
    "less_equal": torch.le,
    "floordiv": torch.floor_divide,
    "mod": torch.remainder,
}
UNARY = ["neg", "abs", "exp", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "relu"]
POSITIVE = ["log", "sqrt", "rsqrt"]
BINARY = ["add", "sub", "mul", "maximum", "minimum", "equal", "less", "less_equal"]
INTEGER = ["floordiv", "mod"]

GRID = np.concatenate([np.linspace(-12.0, 12.0, 4001), [0.0, -0.0, 1e-300, -1e-30]])


def check(result: Any, expected: torch.Tensor, limit: float = 1e-12) -> None:
    assert result.shape == tuple(expected.shape)
    assert result.dtype == expected.numpy().dtype
    np.testing.assert_allclose(result, expected.numpy(), rtol=limit, atol=limit)


@pytest.mark.parametrize("op", UNARY)
def test_functions(op: str) -> None:
    check(RULES[op](GRID), TORCH[op](torch.from_numpy(GRID)))


@pytest.mark.parametrize("op", POSITIVE)
def test_functions_of_positive_numbers(op: str) -> None:
    x = np.exp(GRID)
    check(RULES[op](x), TORCH[op](torch.from_numpy(x)))


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_in_both_forms(approximate: bool) -> None:
    expected = torch.nn.functional.gelu(torch.from_numpy(GRID), approximate="tanh" if approximate else "none")
    check(RULES["gelu"](GRID, approximate=approximate), expected)


def test_the_two_forms_of_gelu_differ() -> None:
    exact, tanh = (RULES["gelu"](GRID, approximate=flag) for flag in (False, True))
    assert 1e-4 < np.abs(exact - tanh).max() < 1e-3


def test_erf_is_accurate_to_rounding() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20_001), np.geomspace(1e-300, 1, 500), [0.46875, 4.0, -4.0]])
    exact = np.array([math.erf(v) for v in x])
    assert np.abs(RULES["erf"](x) - exact).max() <= 2.3e-16
    small = np.abs(x) < 0.5
    assert np.abs(RULES["erf"](x) / np.where(exact == 0, 1, exact) - 1)[small & (exact != 0)].max() < 1e-15
    single = RULES["erf"](x.astype(np.float32))
    assert np.abs(single - [math.erf(v) for v in x.astype(np.float32)]).max() <= 2.0**-25


def test_erf_keeps_the_sign_of_zero() -> None:
    assert np.signbit(RULES["erf"](np.array([0.0, -0.0]))).tolist() == [False, True]


def test_sigmoid_is_accurate_far_below_zero() -> None:
    np.testing.assert_allclose(
        RULES["sigmoid"](np.array([-50.0, -700.0])), np.exp([-50.0, -700.0]), rtol=1e-14
    )


shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4)


@settings(deadline=None, max_examples=40)
@given(shapes, st.integers(0, 2**31), st.sampled_from(BINARY))
def test_floats_broadcast(pair: Any, seed: int, op: str) -> None:
    rng = np.random.default_rng(seed)
    a, b = (np.asarray(np.round(rng.normal(size=s), 1)) for s in pair.input_shapes)
    result = RULES[op](a, b)
    assert result.shape == pair.result_shape
    check(result, TORCH[op](torch.from_numpy(a), torch.from_numpy(b)))


@settings(deadline=None, max_examples=40)
@given(shapes, st.integers(0, 2**31), st.sampled_from(["div", "power"]))
def test_quotients_and_powers_broadcast(pair: Any, seed: int, op: str) -> None:
    rng = np.random.default_rng(seed)
    a, b = (np.asarray(rng.uniform(0.5, 3.0, size=s)) for s in pair.input_shapes)
    check(RULES[op](a, b), TORCH[op](torch.from_numpy(a), torch.from_numpy(b)))


@settings(deadline=None, max_examples=40)
@given(shapes, st.integers(0, 2**31), st.sampled_from(INTEGER))
def test_integers_divide_towards_minus_infinity(pair: Any, seed: int, op: str) -> None:
    rng = np.random.default_rng(seed)
    sign = np.int32(rng.choice([-1, 1]))
    a = np.asarray(rng.integers(-20, 20, size=pair.input_shapes[0], dtype=np.int32))
    b = np.asarray(sign * rng.integers(1, 7, size=pair.input_shapes[1], dtype=np.int32))
    check(RULES[op](a, b), TORCH[op](torch.from_numpy(a), torch.from_numpy(b)))


def test_signs_of_integer_division() -> None:
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32)
    assert RULES["floordiv"](a, b).tolist() == [2, -3, -3, 2]
    assert RULES["mod"](a, b).tolist() == [1, 2, -2, -1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_numbers_take_the_tensors_type(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, dtype)
    for op in ("add", "sub", "mul", "maximum", "minimum"):
        assert RULES[op](x, 2).dtype == dtype
        assert RULES[op](2, x).dtype == dtype
    assert RULES["where"](x > 0, x, 0).dtype == dtype
    assert RULES["where"](x > 0, 0, x).dtype == dtype


def test_a_number_is_rounded_to_the_tensors_type_before_it_is_compared() -> None:
    tenth = np.array([0.1], np.float32)
    assert RULES["equal"](tenth, 0.1).tolist() == [True]
    assert RULES["less"](0.1, tenth).tolist() == [False]
    assert RULES["less_equal"](tenth, 0.1).tolist() == [True]


def test_the_order_of_operands_is_kept() -> None:
    x = np.array([2.0, 4.0])
    assert RULES["sub"](1.0, x).tolist() == [-1.0, -3.0]
    assert RULES["div"](8.0, x).tolist() == [4.0, 2.0]
    assert RULES["power"](x, 2).tolist() == [4.0, 16.0]
    assert RULES["floordiv"](9, np.array([2, 4], np.int32)).tolist() == [4, 2]


def test_maximum_and_minimum_keep_nan() -> None:
    x = np.array([np.nan, 1.0])
    assert np.isnan(RULES["maximum"](x, 0.0)).tolist() == [True, False]
    assert np.isnan(RULES["minimum"](0.0, x)).tolist() == [True, False]


@settings(deadline=None, max_examples=40)
@given(
    hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3),
    st.integers(0, 2**31),
)
def test_where_broadcasts_all_three(triple: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    condition = np.asarray(rng.random(triple.input_shapes[0]) < 0.5)
    a, b = (np.asarray(rng.normal(size=s)) for s in triple.input_shapes[1:])
    expected = torch.where(torch.from_numpy(condition), torch.from_numpy(a), torch.from_numpy(b))
    check(RULES["where"](condition, a, b), expected, 0.0)


def test_logic() -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert RULES["logical_and"](a, b).tolist() == [True, False, False, False]
    assert RULES["logical_or"](a, b).tolist() == [True, True, True, False]
    assert RULES["logical_not"](a).tolist() == [False, False, True, True]


def test_casts() -> None:
    x = np.array([-1.7, -0.5, 0.0, 0.5, 1.7])
    whole = RULES["cast"](x, dtype=np.dtype(np.int32))
    assert whole.dtype == np.int32
    assert whole.tolist() == [-1, 0, 0, 0, 1]
    assert RULES["cast"](x, dtype=np.dtype(np.bool_)).tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert RULES["cast"](np.array([True, False]), dtype=np.dtype(np.float32)).tolist() == [1.0, 0.0]
