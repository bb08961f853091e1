"""The rules of times: beside the reference library's, and what windows are cut into."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.tasks.rules import GenerationRules, timed_prompt_ids
from nest.tasks.timestamps import Heard, Said, Stretch, heard, timed, whole_characters
from nest.tasks.tokens import Tokenizer

from .scripted import tokens_of

START, END, NO_TIMES, FIRST = 20, 19, 21, 22
VOCAB = FIRST + 151  # times from 0 to 3 s
RULES = GenerationRules(
    start=START, end=END, prompt=(START, NO_TIMES), no_timestamps=NO_TIMES, first_timestamp=FIRST, positions=40,
    start_of_previous=18,
)  # fmt: skip


def after(rows: list[list[int]]) -> Said:
    """The state after rows of one length."""
    said = Said.nothing(len(rows))
    for column in zip(*rows, strict=True):
        said = said.then(np.array(column, np.int32), FIRST)
    return said


def time(seconds: float) -> int:
    return FIRST + round(seconds / 0.02)


def admitted(*tokens: int) -> set[int]:
    """What may follow these tokens, where a text token and the end are far likelier than all times together."""
    scores = np.zeros((1, VOCAB), np.float32)
    scores[0, [3, END]] = 50
    return set(np.flatnonzero(np.isfinite(timed(scores, after([list(tokens)]), RULES)[0])).tolist())


def test_a_window_begins_with_a_time_of_its_first_second() -> None:
    assert admitted() == {*range(time(0), time(1.0) + 1)}


def test_a_time_that_begins_a_text_is_followed_by_it() -> None:
    assert admitted(time(0.5)) == {*range(FIRST)} - {NO_TIMES}
    assert admitted(time(0), 4, time(2), time(2)) == {*range(FIRST)} - {NO_TIMES}


def test_a_time_that_ends_a_text_is_followed_by_where_the_next_begins_or_by_the_end() -> None:
    assert admitted(time(0), 4, time(2)) == {END, START, *range(time(2), VOCAB)}


def test_a_text_takes_time() -> None:
    assert admitted(time(0.4), 4) == {*range(FIRST)} - {NO_TIMES} | {*range(time(0.42), VOCAB)}
    assert admitted(time(0.4), 4, time(1), time(1.2), 5) & {*range(FIRST, VOCAB)} == {
        *range(time(1.22), VOCAB)
    }


def test_a_pause_that_is_likelier_than_any_word_is_a_time() -> None:
    scores = np.zeros((2, VOCAB), np.float32)
    scores[:, 3] = [4.0, 6.0]  # beside 150 times, whose mass is log 150 = 5.01
    admitted = np.isfinite(timed(scores, after([[time(0), 4]] * 2), RULES))
    assert not admitted[0, :FIRST].any()
    assert admitted[1, 3]
    assert admitted[:, time(0.02) :].all()


HISTORIES = st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=3, max_size=3), min_size=1, max_size=4)


@pytest.mark.reference
@given(HISTORIES, st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_rows_are_admitted_what_the_library_admits(rows: list[list[int]], length: int, seed: int) -> None:
    import torch
    from transformers import GenerationConfig
    from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor

    rows = [row[:length] for row in rows]
    config = GenerationConfig(
        eos_token_id=END, bos_token_id=END, no_timestamps_token_id=NO_TIMES, max_initial_timestamp_index=50
    )
    scores = np.random.default_rng(seed).standard_normal((len(rows), VOCAB)).astype(np.float32) * 4
    ids = torch.tensor([[START, *row] for row in rows])
    wanted = WhisperTimeStampLogitsProcessor(config, begin_index=1)(ids, torch.from_numpy(scores)).numpy()
    np.testing.assert_array_equal(
        timed(scores, after(rows) if length else Said.nothing(len(rows)), RULES), wanted
    )


def test_prompts() -> None:
    assert timed_prompt_ids(RULES) == (START,)
    assert timed_prompt_ids(RULES, previous=[5, 6]) == (18, 5, 6, START)
    previous = list(range(17)) * 2
    assert timed_prompt_ids(RULES, previous=previous) == (18, *previous[-19:], START)


@pytest.mark.parametrize(
    ("tokens", "stretches", "seconds", "done", "open"),
    [
        ([], [], None, 0, False),
        ([time(0)], [], None, 1, False),
        # One text: closed by a time, cut off, or without any.
        ([time(0.4), 4, time(2)], [Stretch(0.4, 2.0, (4,))], None, 3, False),
        ([time(0.4), 4, 5], [Stretch(0.4, None, (4, 5))], None, 3, False),
        ([4, 5], [Stretch(0.0, None, (4, 5))], None, 2, False),
        # Two, the second closed: the whole window. Begun: from where it begins. Not begun: likewise.
        (
            [time(0), 4, time(1), time(1.2), 5, time(2)],
            [Stretch(0.0, 1.0, (4,)), Stretch(1.2, 2.0, (5,))],
            None, 6, False,
        ),
        ([time(0), 4, time(1), time(1.2), 5], [Stretch(0.0, 1.0, (4,))], 1.0, 3, True),
        ([time(0), 4, time(1), time(1)], [Stretch(0.0, 1.0, (4,))], 1.0, 3, False),
        ([time(0), 4, time(1), time(1), 5, time(2), time(2)], [Stretch(0, 1, (4,)), Stretch(1, 2, (5,))], 2.0, 6,
         False),
    ],
)  # fmt: skip
def test_windows_are_cut_by_their_times(
    tokens: list[int], stretches: list[Stretch], seconds: float | None, done: int, open: bool
) -> None:
    found = heard(tokens, RULES)
    assert found.seconds == pytest.approx(seconds) if seconds is not None else found.seconds is None
    assert found == Heard(found.stretches, found.seconds, tuple(tokens[:done]), open)
    assert [s.tokens for s in found.stretches] == [s.tokens for s in stretches]
    for got, want in zip(found.stretches, stretches, strict=True):
        assert (got.start, got.end) == pytest.approx((want.start, want.end))


@given(st.lists(st.integers(0, VOCAB - 1), max_size=12))
def test_no_text_token_is_lost_or_doubled(tokens: list[int]) -> None:
    found = heard(tokens, RULES)
    kept = [token for stretch in found.stretches for token in stretch.tokens]
    assert kept == [token for token in found.tokens if token < END]
    if found.seconds is None:
        assert found.tokens == tuple(tokens)
    assert found.open == any(token < END for token in tokens[len(found.tokens) :])


def test_no_stretch_begins_within_a_character(tokenizer: Tokenizer) -> None:
    day, rest = tokens_of("日"), tokens_of("本")
    cut = [
        Stretch(0.0, 1.0, (*tokens_of(" a"), *day[:2])),
        Stretch(1.0, 2.0, day[2:]),
        Stretch(2.0, None, (*rest, rest[0])),
    ]
    assert whole_characters(cut, tokenizer) == (
        Stretch(0.0, 1.0, (*tokens_of(" a"), *day)), Stretch(2.0, None, (*rest, rest[0])),
    )  # fmt: skip
    assert whole_characters([Stretch(0.0, 1.0, day[:2])], tokenizer) == ()
    assert whole_characters([], tokenizer) == ()
