"""From attention to times, on made-up numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.tasks._alignment import normalised, onsets, path, smoothed, spans


def plain_total(cost: np.ndarray) -> float:
    """The cheapest path's cost, cell by cell as the definition has it."""
    total = np.full((cost.shape[0] + 1, cost.shape[1] + 1), np.inf)
    total[0, 0] = 0
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            total[i + 1, j + 1] = cost[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return float(total[-1, -1])


@given(st.integers(1, 9), st.integers(1, 14), st.integers(0, 10_000))
def test_the_path_is_connected_and_the_cheapest(rows: int, columns: int, seed: int) -> None:
    cost = np.random.default_rng(seed).standard_normal((rows, columns))
    down, along = path(cost)
    steps = set(zip(np.diff(down).tolist(), np.diff(along).tolist(), strict=True))
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert (down[0], along[0], down[-1], along[-1]) == (0, 0, rows - 1, columns - 1)
    np.testing.assert_allclose(cost[down, along].sum(), plain_total(cost), atol=1e-9)


def test_a_path_through_a_whole_window_loses_nothing_to_running_sums() -> None:
    cost = np.random.default_rng(0).standard_normal((450, 1500)) * 5
    down, along = path(cost)
    np.testing.assert_allclose(cost[down, along].sum(), plain_total(cost), atol=1e-6)


def test_equal_ways_are_diagonal() -> None:
    assert [cells.tolist() for cells in path(np.zeros((3, 3)))] == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 40])
def test_the_median_of_neighbours(length: int) -> None:
    values = np.random.default_rng(length).standard_normal((2, 3, length))
    padded = np.pad(values, [(0, 0), (0, 0), (3, 3)], mode="reflect")
    expected = [np.median(padded[..., i : i + 7], axis=-1) for i in range(length)]
    np.testing.assert_array_equal(smoothed(values), np.stack(expected, axis=-1))


def test_a_single_odd_position_is_smoothed_away() -> None:
    flat = np.zeros(20)
    flat[9] = 100
    assert not smoothed(flat).any()


def test_weights_are_normalised_over_the_tokens() -> None:
    weights = np.random.default_rng(3).random((2, 5, 8)).astype(np.float32)
    weights[..., 4] = 0  # a position that nobody looks at
    made = normalised(weights)
    np.testing.assert_allclose(made.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.delete(made.std(axis=1), 4, axis=-1), 1)
    np.testing.assert_array_equal(made[..., 4], 0)
    # What lies outside the recording took its part of each token's attention; the scale of a token is none of its own.
    scaled = weights * np.array([1, 2, 3, 4, 5], np.float32)[:, None]
    np.testing.assert_allclose(normalised(scaled), made, atol=1e-6)


def attention(starts: list[int], positions: int, prompt: int) -> np.ndarray:
    """Two heads in which the query before each token looks at where that token is said; one looks elsewhere too."""
    rows = prompt + len(starts)  # the last text token's query is where the end is chosen
    weights = np.full((2, rows + 1, positions), 1e-3)
    for token, (first, last) in enumerate(pairwise([*starts, positions])):
        weights[:, prompt - 1 + token, first:last] += 1 / (last - first)
    weights[1, :, :2] += 0.8  # a resting place
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("prompt", [1, 2, 4])
def test_tokens_begin_where_they_are_attended_to(prompt: int) -> None:
    starts = [0, 12, 30, 31, 60]
    found = onsets(attention(starts, 90, prompt), prompt)
    assert len(found) == len(starts) + 1
    assert (np.diff(found) >= 0).all()
    # A median of seven blurs a token of one position, and shifts an edge by no more than half its width.
    assert np.abs(found[:5] - starts).max() <= 3


TIMES = st.lists(st.tuples(st.floats(-5, 40), st.floats(-5, 40)), min_size=1, max_size=30)


@given(TIMES, st.floats(0.1, 30))
def test_spans_are_in_order_and_inside(times: list[tuple[float, float]], end: float) -> None:
    found = spans(np.array(times), end)
    assert found.min() >= 0
    assert found.max() <= end
    assert (found[:, 0] < found[:, 1]).all()
    assert (found[1:, 0] >= found[:-1, 1]).all()


def test_spans_that_are_in_order_stay() -> None:
    times = np.array([[0, 0.5], [0.5, 0.52], [1.0, 1.5]])
    np.testing.assert_allclose(spans(times, 1.5), times)


def test_a_word_without_length_gets_one() -> None:
    np.testing.assert_allclose(spans(np.array([[0.5, 0.5], [0.5, 0.5]]), 2.0), [[0.5, 0.52], [0.52, 0.54]])
    np.testing.assert_allclose(spans(np.array([[2.0, 2.0], [2.0, 2.0]]), 2.0), [[1.96, 1.98], [1.98, 2.0]])
    np.testing.assert_allclose(spans(np.zeros((4, 2)), 0.04)[:, 0], [0, 0.01, 0.02, 0.03])
