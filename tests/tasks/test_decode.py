from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.errors import InputError, NestError
from nest.tasks._rows import choose
from nest.tasks.decode import greedy, language_probabilities
from nest.tasks.rules import GenerationRules

from .scripted import END, ENGLISH, GERMAN, NO_TIMES, START, ScriptedSession

PROMPT = np.array([[START, NO_TIMES]], dtype=np.int32)
ROWS = st.lists(
    st.lists(st.integers(20, 200), max_size=9).map(lambda row: (20, *row)), min_size=1, max_size=4
)


def test_tokens_are_fed_back_until_the_end(rules: GenerationRules) -> None:
    session = ScriptedSession([(30, 31, 32)])
    assert greedy(session, PROMPT, rules) == [(30, 31, 32)]
    np.testing.assert_array_equal(session.prompts, [PROMPT])
    np.testing.assert_array_equal(np.concatenate(session.fed), [30, 31, 32])


@given(ROWS)
def test_rows_of_a_batch_are_as_they_are_alone(rules: GenerationRules, rows: list[tuple[int, ...]]) -> None:
    together = greedy(ScriptedSession(rows), np.repeat(PROMPT, len(rows), axis=0), rules)
    alone = [greedy(ScriptedSession([row]), PROMPT, rules)[0] for row in rows]
    assert together == alone == [row[: rules.max_tokens] for row in rows]


def test_an_ended_row_goes_on_with_the_end_token(rules: GenerationRules) -> None:
    session = ScriptedSession([(30,), (40, 41, 42)])
    assert greedy(session, np.repeat(PROMPT, 2, axis=0), rules) == [(30,), (40, 41, 42)]
    np.testing.assert_array_equal(np.stack(session.fed), [[30, 40], [END, 41], [END, 42]])


def test_suppressed_tokens_give_way_to_the_next_best(rules: GenerationRules) -> None:
    # Beside the script, token 7 is second (suppressed), 8 third (not first), 9 fourth.
    assert greedy(ScriptedSession([(8, 7, 7)]), PROMPT, rules) == [(9, 8, 8)]


def test_the_end_cannot_be_first_where_that_is_suppressed(rules: GenerationRules) -> None:
    assert greedy(ScriptedSession([()]), PROMPT, rules) == [(9,)]
    assert greedy(ScriptedSession([()]), PROMPT, replace(rules, begin_suppress=())) == [()]


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_no_step_is_taken_beyond_max_tokens(rules: GenerationRules, limit: int) -> None:
    session = ScriptedSession([(30,) * 20])
    assert greedy(session, PROMPT, rules, max_tokens=limit) == [(30,) * limit]
    assert len(session.fed) == limit - 1


def test_decoding_stops_where_positions_end(rules: GenerationRules) -> None:
    session = ScriptedSession([(30,) * 20])
    assert greedy(session, PROMPT, rules, max_tokens=99) == [(30,) * 10]
    assert session.position < rules.positions


def test_a_prompt_that_fills_the_positions_is_refused(rules: GenerationRules) -> None:
    session = ScriptedSession([(30,)])
    with pytest.raises(InputError, match="Shorten the prompt"):
        greedy(session, np.full((1, 12), START, dtype=np.int32), rules)
    assert not session.prompts


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_refused(bad: float) -> None:
    logits = np.zeros((2, 5), dtype=np.float32)
    logits[1, 3] = bad
    with pytest.raises(NestError, match=f"best logit is {bad}, so no token can be chosen"):
        choose(logits, np.zeros(5, dtype=np.float32))


def test_a_row_with_everything_excluded_is_refused() -> None:
    with pytest.raises(NestError, match="best logit is -inf"):
        choose(np.zeros((1, 5), dtype=np.float32), np.full(5, -np.inf, dtype=np.float32))


def test_languages_are_ranked_by_the_logits_after_the_start_token(rules: GenerationRules) -> None:
    languages = replace(rules, languages={"en": ENGLISH, "de": GERMAN})
    session = ScriptedSession([(GERMAN,), (ENGLISH,)])
    german, english = language_probabilities(session, languages, rows=2)
    np.testing.assert_array_equal(session.prompts, [[[START], [START]]])
    assert list(german) == ["de", "en"]
    assert list(english) == ["en", "de"]
    assert german["de"] == pytest.approx(1 / (1 + np.exp(-10)))
    assert sum(german.values()) == pytest.approx(1)
