"""The likeliest tokens as one call: those of the logits, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError
from nest.layers import Block, Dim, Float32, Int32, Tensor, entry
from nest.loops.branch import CANDIDATES, _top
from nest.tasks._candidates import top
from nest.tasks.rules import GenerationRules, bias
from nest.tasks.timestamps import Said, closed_bias, text_bias, time_ids, timed

from ..speech import BACKENDS, VOCAB, heard, padded

TOKENS, LENGTHS = padded([[1, 2], [4, 5, 6, 7], [9]])
BIAS = np.zeros(VOCAB, np.float32)
BIAS[[3, 8]] = -np.inf
# Of 17 ids: words 0 to 6, the end, two control tokens, and seven times.
RULES = GenerationRules(
    start=8, end=7, prompt=(8, 9), no_timestamps=9, first_timestamp=10, positions=24, suppress=(3, 8)
)


def same(session: Any, found: Any, scores: np.ndarray) -> None:
    values, ids = map(session.numpy, found)
    want, order = top(scores, CANDIDATES)
    possible = want > -1e37
    np.testing.assert_allclose(values[possible], want[possible], atol=2e-3)
    assert (values[~possible] < -1e37).all()
    assert possible.any(axis=1).all()
    np.testing.assert_array_equal(ids[possible], order[possible])


def test_what_comes_after_a_prompt_and_after_a_token(model: Any) -> None:
    session, other = heard(model, 3), heard(model, 3)
    logits = other.numpy(other.prefill(TOKENS, LENGTHS))
    same(session, session.prefill_top(TOKENS, BIAS, LENGTHS), logits + BIAS)
    token = np.array([[5], [0], [2]], np.int32)
    logits = other.numpy(other.step(token, LENGTHS))
    same(session, session.step_top(token, LENGTHS, BIAS), logits + BIAS)
    token[:] = 4
    logits = other.numpy(other.step(token, LENGTHS + 1))
    same(session, session.step_top(token, LENGTHS + 1), logits)


@pytest.mark.parametrize(
    "rows", [[[10, 4], [11, 5], [12, 6]], [[4, 11], [10, 11], [0, 7]], [[2, 10], [1, 16], [16, 16]]]
)
def test_what_comes_among_times(model: Any, rows: list[list[int]]) -> None:
    session, other = heard(model, 3), heard(model, 3)
    session.prefill(TOKENS, LENGTHS)
    other.prefill(TOKENS, LENGTHS)
    said = Said.nothing(3)
    for column in zip(*rows, strict=True):
        said = said.then(np.array(column, np.int32), RULES.first_timestamp)
    given = [time_ids(RULES, VOCAB), text_bias(RULES, VOCAB), closed_bias(RULES, VOCAB)]
    found = session.step_top_timed(said.last[:, None], LENGTHS, said.before, said.latest, *given)
    logits = other.numpy(other.step(said.last[:, None], LENGTHS))
    same(session, found, timed(logits + bias(RULES, VOCAB), said, RULES))


def test_a_row_that_is_no_number_is_told_from_the_others(model: Any) -> None:
    session = heard(model, 2)
    nothing = np.full(VOCAB, -np.inf, np.float32)
    values, _ = session.prefill_top([[1, 2]] * 2, nothing)
    assert np.isnan(session.numpy(values)).all()
    with pytest.raises(CallError, match="argument 'token'"):
        session.step_top([[VOCAB]] * 2, 2)


class Few(Block):
    """Fewer tokens than candidates."""

    Vocab: Dim

    def build(self) -> None: ...

    @entry
    def chosen(
        self, scores: Float32[Tensor, "B Vocab"]
    ) -> tuple[Float32[Tensor, "B 16"], Int32[Tensor, "B 16"]]:
        return _top(scores)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_small_vocabulary_and_equals(backend: str) -> None:
    model = nest.load(Few, backend=backend, weights=None, Vocab=5)
    values, ids = (np.asarray(x) for x in model.chosen(np.array([[1, 3, 3, 0, 3]], np.float32)))
    assert ids[0, :5].tolist() == [1, 2, 4, 0, 3]
    assert np.exp(values[0].astype(float)).sum() == pytest.approx(1)
    assert (values[0, 5:] == -np.inf).all()
