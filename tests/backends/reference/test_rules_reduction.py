"""Reductions and ops along one axis against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nest.backends.reference.rules import RULES

TORCH: dict[str, Any] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "max": torch.amax,
    "min": torch.amin,
    "any": torch.any,
    "logsumexp": torch.logsumexp,
}
shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def check(result: Any, expected: torch.Tensor) -> None:
    assert result.shape == tuple(expected.shape)
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=100)
@given(
    shapes,
    st.data(),
    st.integers(0, 2**31),
    st.sampled_from(list(TORCH)),
    st.booleans(),
)
def test_reductions(shape: tuple[int, ...], data: st.DataObject, seed: int, op: str, keepdims: bool) -> None:
    chosen = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    axes = tuple(sorted(chosen))
    x = np.random.default_rng(seed).normal(size=shape) * 3.0
    given_x = x > 2.0 if op == "any" else x
    expected = TORCH[op](torch.from_numpy(given_x), dim=axes, keepdim=keepdims)
    check(RULES[op](given_x, axes=axes, keepdims=keepdims), expected)


def test_sums_of_integers_stay_integers() -> None:
    x = np.array([[2**30, 1], [3, 4]], np.int32)
    total = RULES["sum"](x, axes=(1,), keepdims=False)
    assert total.dtype == np.int32
    assert total.tolist() == [2**30 + 1, 7]
    assert RULES["cumsum"](x, axis=1).dtype == np.int32


def test_logsumexp_neither_overflows_nor_loses_infinities() -> None:
    x = np.array(
        [
            [1000.0, 1000.0],
            [-1000.0, -1000.0],
            [-np.inf, -np.inf],
            [np.inf, 0.0],
            [-np.inf, 2.0],
        ]
    )
    expected = [1000.0 + np.log(2.0), -1000.0 + np.log(2.0), -np.inf, np.inf, 2.0]
    np.testing.assert_allclose(RULES["logsumexp"](x, axes=(1,), keepdims=False), expected, rtol=1e-15)


@settings(deadline=None, max_examples=40)
@given(shapes, st.data(), st.integers(0, 2**31))
def test_ops_along_an_axis(shape: tuple[int, ...], data: st.DataObject, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = np.random.default_rng(seed).normal(size=shape) * 5.0
    tensor = torch.from_numpy(x)
    check(RULES["softmax"](x, axis=axis), torch.softmax(tensor, axis))
    check(RULES["cumsum"](x, axis=axis), torch.cumsum(tensor, axis))
    largest = RULES["argmax"](x, axis=axis)
    assert largest.dtype == np.int32
    check(largest, torch.argmax(tensor, axis))


def test_softmax_does_not_overflow() -> None:
    assert RULES["softmax"](np.array([1e4, 1e4, -np.inf]), axis=0).tolist() == [
        0.5,
        0.5,
        0.0,
    ]


def test_argmax_takes_the_first_of_equals() -> None:
    assert RULES["argmax"](np.array([[1.0, 5.0, 5.0], [2.0, 2.0, 2.0]]), axis=1).tolist() == [1, 0]


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_top_k_orders_equals_by_index(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = data.draw(hnp.arrays(np.float64, shape, elements=st.integers(-2, 2).map(float)))
    k = data.draw(st.integers(1, shape[-1]))
    values, indices = RULES["top_k"](x, k=k)
    assert values.shape == indices.shape == (*shape[:-1], k)
    assert indices.dtype == np.int32
    for place in np.ndindex(shape[:-1]):
        expected = sorted(range(shape[-1]), key=lambda i: (-x[place][i], i))[:k]
        assert indices[place].tolist() == expected
        assert values[place].tolist() == [x[place][i] for i in expected]


@pytest.mark.parametrize("k", [1, 3])
def test_top_k_of_distinct_numbers(k: int) -> None:
    x = np.random.default_rng(1).normal(size=(3, 7))
    values, indices = RULES["top_k"](x, k=k)
    expected = torch.topk(torch.from_numpy(x), k)
    np.testing.assert_array_equal(values, expected.values.numpy())
    np.testing.assert_array_equal(indices, expected.indices.numpy())
