"""The rules about times, in ops and in numpy: the same is allowed, and the same is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.layers import Block, Dim, Float32, Int32, Tensor, entry
from nest.loops.times import Allowed, after, at_first, joined, likeliest, time_of
from nest.tasks._rows import log_probabilities
from nest.tasks.rules import GenerationRules
from nest.tasks.timestamps import Said, closed_bias, text_bias, time_ids, timed

from ..speech import BACKENDS

ROWS, VOCAB, TEXT, END, FIRST = 600, 90, 12, 12, 20
RULES = GenerationRules(
    start=13, end=END, prompt=(13,), no_timestamps=FIRST - 1, first_timestamp=FIRST, positions=30, suppress=(3, 15),
)  # fmt: skip
TIMES = time_ids(RULES, VOCAB)
BIAS, CLOSED = text_bias(RULES, VOCAB), closed_bias(RULES, VOCAB)
RNG = np.random.default_rng(5)


def _seen(allowed: Allowed, times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return joined(allowed, times), *likeliest(allowed, times)


class Rules(Block):
    """The rules as entries."""

    Vocab: Dim

    def build(self) -> None: ...

    @entry
    def first(
        self, logits: Float32[Tensor, "B Vocab"], times: Int32[Tensor, "Times"], limit: Int32[Tensor, ""]
    ) -> tuple[Float32[Tensor, "B Vocab"], Int32[Tensor, "B"], Float32[Tensor, "B"]]:
        return _seen(at_first(logits, times, limit), times)

    @entry
    def next(
        self,
        logits: Float32[Tensor, "B Vocab"],
        last: Int32[Tensor, "B"],
        before: Int32[Tensor, "B"],
        latest: Int32[Tensor, "B"],
        times: Int32[Tensor, "Times"],
        bias: Float32[Tensor, "Vocab"],
        closed: Float32[Tensor, "Vocab"],
    ) -> tuple[Float32[Tensor, "B Vocab"], Int32[Tensor, "B"], Float32[Tensor, "B"]]:
        return _seen(after(logits, last, before, latest, times, bias, closed), times)

    @entry
    def latest(
        self, token: Int32[Tensor, "B"], latest: Int32[Tensor, "B"], times: Int32[Tensor, "Times"]
    ) -> Int32[Tensor, "B"]:
        return time_of(token, latest, times)


@pytest.fixture(scope="module", params=BACKENDS)
def rules(request: pytest.FixtureRequest) -> Any:
    return nest.load(Rules, Vocab=VOCAB, backend=request.param, weights={})


def logits() -> Any:
    """Some rows hear a pause, some a text, and some can hardly tell."""
    made = RNG.normal(0, 2, (ROWS, VOCAB)).astype(np.float32)
    made[:, FIRST:] += RNG.choice([-4.0, -2.0, 0.0, 3.0], (ROWS, 1)).astype(np.float32)
    return made


def states() -> Said:
    """What rows may have said: nothing but a time, texts, one time or two after a text."""
    latest = RNG.integers(-1, len(TIMES), ROWS)
    time = FIRST + np.maximum(latest, 0)
    text = RNG.integers(0, TEXT, (2, ROWS))
    kind = RNG.integers(0, 4, ROWS)
    last = np.where(kind < 2, time, text[0])
    before = np.choose(
        kind, [np.full(ROWS, -1), RNG.permuted(np.where(kind == 1, text[1], time)), text[1], time]
    )
    return Said(*(x.astype(np.int32) for x in (last, before, latest)))


def agree(found: tuple[Any, Any, Any], want: Any) -> None:
    scores, token, sure = (np.asarray(x) for x in found)
    allowed = np.isfinite(want)
    np.testing.assert_array_equal(scores > -1e38, allowed)
    np.testing.assert_allclose(scores[allowed], want[allowed], rtol=1e-6)
    likely = want.argmax(axis=1)
    np.testing.assert_array_equal(token, likely)
    np.testing.assert_allclose(sure, log_probabilities(want, likely), rtol=2e-5, atol=2e-6)


def host(model: Any, found: Any) -> Any:
    session = model.new_session()
    return tuple(np.asarray(session.numpy(x)) for x in found)


def test_at_first_there_is_a_time_of_the_first_second(rules: Any) -> None:
    given = logits()
    want = timed(given + _suppressed(), Said.nothing(ROWS), RULES)
    agree(host(rules, rules.first(given, TIMES, np.int32(50))), want)
    assert (want.argmax(axis=1) >= FIRST).all()
    assert np.isfinite(want).sum(axis=1).max() == 51


def test_after_any_tokens_the_same_may_come(rules: Any) -> None:
    given, said = logits(), states()
    want = timed(given + _suppressed(), said, RULES)
    found = rules.next(given, said.last, said.before, said.latest, TIMES, BIAS, CLOSED)
    agree(host(rules, found), want)
    texts = want.argmax(axis=1) < FIRST
    assert 0.1 < texts.mean() < 0.9


def test_the_latest_time(rules: Any) -> None:
    said = states()
    token = RNG.integers(0, VOCAB, ROWS).astype(np.int32)
    (found,) = host(rules, [rules.latest(token, said.latest, TIMES)])
    np.testing.assert_array_equal(found, said.then(token, FIRST).latest)


def test_numbers_that_are_none_make_the_sum_none(rules: Any) -> None:
    given = np.full((2, VOCAB), np.nan, np.float32)
    two = np.full(2, 5, np.int32)
    _, _, sure = host(rules, rules.next(given, two, two, two, TIMES, BIAS, CLOSED))
    assert np.isnan(sure).all()


def _suppressed() -> Any:
    vector = np.zeros(VOCAB, np.float32)
    vector[list(RULES.suppress)] = -np.inf
    return vector
