from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.errors import InputError
from nest.tasks.rules import GenerationRules, bias, first_bias, prompt_ids, token_budget

from .scripted import END, ENGLISH, GERMAN, NO_TIMES, START, TRANSCRIBE, TRANSLATE


@pytest.fixture
def multilingual(rules: GenerationRules) -> GenerationRules:
    return replace(
        rules,
        languages={"en": ENGLISH, "de": GERMAN},
        tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    )


def test_the_bias_excludes_what_is_suppressed(rules: GenerationRules) -> None:
    always, first = bias(rules, 300), first_bias(rules, 300)
    assert always.dtype == first.dtype == np.float32
    assert always.shape == first.shape == (300,)
    assert set(np.flatnonzero(always)) == {7, START}
    assert set(np.flatnonzero(first)) == {7, 8, START, END}
    assert (always[[7, START]] == -np.inf).all()
    assert (first[[7, 8, START, END]] == -np.inf).all()


def test_no_lists_exclude_nothing(rules: GenerationRules) -> None:
    free = replace(rules, suppress=(), begin_suppress=())
    assert not bias(free, 300).any()
    assert not first_bias(free, 300).any()


@pytest.mark.parametrize("language", [None, "en"])
def test_an_english_prompt(rules: GenerationRules, language: str | None) -> None:
    assert prompt_ids(rules, language) == (START, NO_TIMES)


def test_a_multilingual_prompt_names_language_and_task(multilingual: GenerationRules) -> None:
    assert prompt_ids(multilingual, "de") == (START, GERMAN, TRANSCRIBE, NO_TIMES)
    assert prompt_ids(multilingual, "en", "translate") == (START, ENGLISH, TRANSLATE, NO_TIMES)


@pytest.mark.parametrize(
    ("language", "task", "wish"),
    [("de", "transcribe", "language 'de'"), (None, "translate", "task 'translate'")],
)
def test_an_english_model_refuses_the_rest(
    rules: GenerationRules, language: str | None, task: str, wish: str
) -> None:
    with pytest.raises(InputError, match=f"transcribes English only, and {wish} was asked for"):
        prompt_ids(rules, language, task)


@pytest.mark.parametrize("language", [None, "xx", "German"])
def test_an_unknown_language_is_refused_with_those_known(
    multilingual: GenerationRules, language: str | None
) -> None:
    with pytest.raises(InputError, match=rf"The language {language!r} is none .* Its codes are: de en\."):
        prompt_ids(multilingual, language)


def test_a_model_that_cannot_translate_says_so(multilingual: GenerationRules) -> None:
    only = replace(multilingual, tasks={"transcribe": TRANSCRIBE})
    with pytest.raises(InputError, match="has no task 'translate'; it has: transcribe"):
        prompt_ids(only, "de", "translate")


def test_an_unknown_task_is_refused(rules: GenerationRules) -> None:
    with pytest.raises(InputError, match="The task 'sing' is unknown; expected 'transcribe' or 'translate'"):
        prompt_ids(rules, "en", "sing")


@given(prompt=st.integers(1, 11), wanted=st.one_of(st.none(), st.integers(1, 30)))
def test_the_budget_stays_within_both_limits(rules: GenerationRules, prompt: int, wanted: int | None) -> None:
    budget = token_budget(rules, prompt, wanted)
    assert 1 <= budget <= (wanted or rules.max_tokens)
    assert prompt + budget <= rules.positions
    assert budget in (wanted or rules.max_tokens, rules.positions - prompt)


def test_a_prompt_without_room_is_refused(rules: GenerationRules) -> None:
    with pytest.raises(InputError, match="The prompt has 12 tokens, and the decoder holds 12"):
        token_budget(rules, 12)


def test_no_tokens_are_refused(rules: GenerationRules) -> None:
    with pytest.raises(InputError, match="max_tokens=0 is no number of tokens"):
        token_budget(rules, 2, 0)
