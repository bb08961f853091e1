"""The host's rule for one token, beside the reference library's filters."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError
from nest.tasks.sampling import draw, penalised, ranked_weights, uniforms

VOCAB = 40
SCORES = np.random.default_rng(5).normal(0, 3, (12, VOCAB)).astype(np.float32)


def probabilities(scores: Any, *settings: Any) -> Any:
    order, weights = ranked_weights(scores, *settings)
    found = np.zeros(VOCAB)
    found[order] = weights / weights.sum()
    return found


@pytest.mark.reference
def test_filters_leave_what_the_reference_library_leaves() -> None:
    import torch
    from transformers.generation import logits_process as theirs

    cases = itertools.product((0.5, 1.0, 1.7), (0, 1, 6, 60), (1.0, 0.9, 0.3), (0.0, 0.05, 0.4))
    for temperature, most, mass, floor in cases:
        steps: list[Any] = [theirs.TemperatureLogitsWarper(temperature)]
        if most:
            steps.append(theirs.TopKLogitsWarper(most))
        if mass < 1:
            steps.append(theirs.TopPLogitsWarper(mass))
        if floor:
            steps.append(theirs.MinPLogitsWarper(floor))
        for row in SCORES:
            scores = torch.from_numpy(row[None])
            for step in steps:
                scores = step(None, scores)
            want = torch.softmax(scores.double(), -1)[0].numpy()
            np.testing.assert_allclose(probabilities(row, temperature, most, mass, floor), want, atol=2e-6)


@pytest.mark.reference
@pytest.mark.parametrize("penalty", [1.0, 1.3, 0.8])
def test_a_penalty_is_the_reference_library_s(penalty: float) -> None:
    import torch
    from transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor

    ids = np.array([[1, 2, 2, 39], [0, 5, 7, 7]])
    seen = np.zeros((2, VOCAB), np.float32)
    np.put_along_axis(seen, ids, np.float32(1), 1)
    want = RepetitionPenaltyLogitsProcessor(penalty)(
        torch.from_numpy(ids), torch.from_numpy(SCORES[:2].copy())
    )
    np.testing.assert_array_equal(penalised(SCORES[:2], seen, penalty), want.numpy())


def test_each_id_is_drawn_as_often_as_it_weighs() -> None:
    count = 4000
    for settings in [(1.0,), (0.7, 5), (1.3, 0, 0.8), (1.0, 0, 1.0, 0.1), (1.5, 9, 0.9, 0.05)]:
        drawn = [draw(SCORES[0], (at + 0.5) / count, *settings) for at in range(count)]
        expected = probabilities(SCORES[0], *settings) * count
        assert np.abs(np.bincount(drawn, minlength=VOCAB) - expected).max() <= 1


def test_nothing_is_drawn_that_was_filtered_out_and_the_most_likely_always_stays() -> None:
    for row in SCORES:
        for u in (0.0, 0.5, 1 - 2**-24):
            assert (
                draw(row, u, 1.0, 1)
                == draw(row, u, 1.0, 0, 1e-9)
                == draw(row, u, 1.0, 0, 1.0, 1.0)
                == row.argmax()
            )
            assert draw(row, u, 0.0, 3, 0.5, 0.5) == row.argmax()


def test_a_row_s_numbers_are_its_own_and_fewer_are_the_beginning_of_more() -> None:
    many = uniforms(3, 10, 4)
    assert (uniforms(3, 6, 2) == many[:6, :2]).all()
    assert (uniforms([7, 3], 10, 2)[:, 1] == uniforms([3], 10, 1)[:, 0]).all()
    assert ((many >= 0) & (many < 1)).all()
    assert len(np.unique(many)) == many.size
    with pytest.raises(InputError, match="2 seeds were given for 3 rows"):
        uniforms([1, 2], 4, 3)
    with pytest.raises(InputError, match="The seed -1 is negative"):
        uniforms(-1, 4, 3)
