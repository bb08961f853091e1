"""A batch of windows that are decoded until each is believed, beside one window after another, on every backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nest.tasks._attempts import best_attempt
from nest.tasks._branches import Branches
from nest.tasks._row_attempts import RowAttempts, filled
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks.rules import GenerationRules

from ..speech import BACKENDS, CAPACITY, mel_of, model_on

RULES = GenerationRules(
    start=1, end=7, prompt=(1, 9), no_timestamps=9, first_timestamp=10, positions=CAPACITY, max_tokens=14,
    no_speech=3, suppress=(2,),
)  # fmt: skip
WINDOWS, SIZE = 3, 4
SEEDS = [3, 14, 15]


class Letters:
    """A tokenizer of which every token is a letter."""

    def decode(self, ids: Any) -> str:
        return "".join(chr(97 + token) for token in ids)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("least", "silence", "told"),
    [
        (-0.8, None, [(1.0, False), (0.0, False), (0.0, False)]),
        (-0.75, 0.02, [(0.0, True), (0.0, True), (0.0, False)]),
    ],
)
def test_a_row_is_decoded_as_by_itself(
    backend: str, least: float, silence: float | None, told: list[tuple[float, bool]]
) -> None:
    wishes = SpeechWishes(log_probability_threshold=least, no_speech_threshold=silence)
    session = model_on(backend).new_session(Batch=SIZE)
    session.listen(mel_of(WINDOWS, seed=6)[filled(range(WINDOWS), SIZE)])
    tokenizer: Any = Letters()
    alone = [
        best_attempt(session.fork([row]), Branches(), (1,), RULES, tokenizer, wishes, seed)
        for row, seed in enumerate(SEEDS)
    ]
    together = RowAttempts((1,), RULES, tokenizer, wishes, Branches()).best(session, SIZE, SEEDS)
    assert [(attempt.temperature, attempt.silent) for attempt in together] == told
    for one, other in zip(together, alone, strict=True):
        assert one.mean_log_probability == pytest.approx(other.mean_log_probability, rel=2e-3)
        assert replace(one, mean_log_probability=0.0) == replace(other, mean_log_probability=0.0)


def test_rows_are_filled_with_the_first() -> None:
    assert filled([5, 3], 4) == [5, 3, 5, 5]
    assert filled(range(2), 2) == [0, 1]
    np.testing.assert_array_equal(np.arange(3)[filled([2], 1)], [2])
