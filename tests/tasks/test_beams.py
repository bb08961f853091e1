"""Beam search where every distribution is known: beside all texts, beside greedy, and beside a plainer search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.errors import NestError
from nest.tasks._branches import Branches
from nest.tasks._candidates import top
from nest.tasks.beams import Beams, beam_search, likeliest
from nest.tasks.decode import Decoded, decode
from nest.tasks.rules import GenerationRules, bias, first_bias
from nest.tasks.timestamps import Said, timed

from .tables import Logits, TableSession, drawn, written

# Words 0 to 4, and times from 9 on.
END, START, NO_TIMES, FIRST = 6, 7, 8, 9
VOCAB = FIRST + 8
PROMPT = np.array([[START, NO_TIMES]], np.int32)
RULES = GenerationRules(
    start=START, end=END, prompt=(START, NO_TIMES), no_timestamps=NO_TIMES, first_timestamp=FIRST, positions=20,
    max_tokens=5, suppress=(4, 5, START, NO_TIMES, *range(FIRST, VOCAB)), begin_suppress=(3, END),
)  # fmt: skip
TIMED = replace(RULES, suppress=(4, 5, START), begin_suppress=())


def search(session: Any, beams: Beams, rules: GenerationRules = RULES, **options: Any) -> list[Decoded]:
    prompt = np.repeat(PROMPT, len(session.tables), axis=0)
    return beam_search(session, Branches(), prompt, rules, beams, **options)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    wide = scores.astype(np.float64) - scores.max()
    return np.asarray(wide - np.log(np.exp(wide).sum()))


def scores_after(table: Logits, seen: tuple[int, ...], rules: GenerationRules, times: bool) -> np.ndarray:
    excluded = bias(rules, VOCAB) if seen else first_bias(rules, VOCAB)
    scores = table(seen)[None] + excluded
    if times:
        said = Said.nothing(1)
        for token in seen:
            said = said.then(np.array([token], np.int32), rules.first_timestamp)
        scores = timed(scores, said, rules)
    return log_softmax(scores[0])


def all_texts(table: Logits, rules: GenerationRules, seen: tuple[int, ...] = ()) -> Iterator[Decoded]:
    for token, score in enumerate(scores_after(table, seen, rules, False)):
        if not np.isfinite(score):
            continue
        if token == rules.end:
            yield Decoded(seen, score)
        elif len(seen) + 1 == rules.max_tokens:
            yield Decoded((*seen, token), score)
        else:
            for rest in all_texts(table, rules, (*seen, token)):
                yield Decoded(rest.tokens, score + rest.log_probability)


def plain_search(
    table: Logits, size: int, patience: float, rules: GenerationRules, times: bool
) -> dict[tuple[int, ...], float]:
    """Texts and their scores, by lists of all prefixes and all their tokens."""
    beams, ended = {(): 0.0}, {}
    for _ in range(rules.max_tokens):
        grown = {
            (*seen, token): total + score
            for seen, total in beams.items()
            for token, score in enumerate(scores_after(table, seen, rules, times))
            if np.isfinite(score)
        }
        ranked = sorted(grown, key=lambda text: -grown[text])
        alive = [text for text in ranked if text[-1] != rules.end]
        worst = grown[alive[:size][-1]] if len(alive) >= size else -np.inf
        for text in ranked:
            if text[-1] == rules.end and grown[text] > worst and len(ended) < round(size * patience):
                ended[text[:-1]] = grown[text]
        beams = {text: grown[text] for text in alive[:size]}
        if len(ended) >= round(size * patience):
            break
    left = sorted(beams, key=lambda text: -beams[text])[: max(0, size - len(ended))]
    return ended | {text: beams[text] for text in left}


def same(got: Decoded, want: Decoded) -> None:
    assert got.tokens == want.tokens
    assert got.log_probability == pytest.approx(want.log_probability, abs=1e-4)


SEEDS = st.integers(0, 2**16)

# The likelier first word leads to nothing certain: 0.6 * 0.5 * 0.6, beside 0.4 * 0.9 * 1.
GARDEN = {
    (): {0: 0.6, 1: 0.4}, (0,): {0: 0.5, 1: 0.3, END: 0.2}, (0, 0): {END: 0.6, 1: 0.4}, (1,): {2: 0.9, END: 0.1},
    (1, 2): {END: 1.0},
}  # fmt: skip


def test_the_likelier_text_is_found_behind_an_unlikelier_word() -> None:
    session = TableSession([written(GARDEN, VOCAB)])
    (chosen,) = decode(session, PROMPT, RULES)
    assert chosen.tokens == (0, 0)
    (found,) = search(session, Beams(2))
    same(found, Decoded((1, 2), np.log(0.36)))
    assert found.log_probability > chosen.log_probability
    # Caches follow the prefixes: the first row goes on with the second's.
    assert session.made[0].prefills == 0


@given(SEEDS)
@settings(max_examples=10, deadline=None)
def test_a_search_as_wide_as_all_texts_finds_the_best_of_them(seed: int) -> None:
    rules, table = replace(RULES, max_tokens=3), drawn(seed, VOCAB)
    texts = list(all_texts(table, rules))
    assert len(texts) == 3 + 3 * 4 + 3 * 4 * 4
    for penalty in (None, 0.0, 0.6):
        (found,) = search(TableSession([table]), Beams(64, 2.0, penalty), rules)
        same(found, likeliest(texts, penalty))


@given(SEEDS, st.booleans())
@settings(max_examples=30, deadline=None)
def test_one_beam_is_greedy(seed: int, times: bool) -> None:
    rules = TIMED if times else RULES
    (found,) = search(TableSession([drawn(seed, VOCAB)]), Beams(1), rules, timed=times)
    same(found, decode(TableSession([drawn(seed, VOCAB)]), PROMPT, rules, timed=times)[0])


@given(SEEDS, st.integers(1, 6), st.sampled_from([0.5, 1.0, 1.7, 3.0]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_texts_are_those_of_the_plain_search(seed: int, size: int, patience: float, times: bool) -> None:
    rules, beams = TIMED if times else RULES, Beams(size, max(patience, 0.51 / size), 1.0)
    session = TableSession([drawn(seed, VOCAB)])
    (found,) = search(session, beams, rules, timed=times)
    texts = plain_search(session.tables[0], size, beams.patience, rules, times)
    same(found, likeliest([Decoded(text, total) for text, total in texts.items()], 1.0))


@given(st.lists(SEEDS, min_size=2, max_size=4), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_rows_of_a_batch_are_as_they_are_alone(seeds: list[int], size: int) -> None:
    tables = [drawn(seed, VOCAB) for seed in seeds]
    together = search(TableSession(tables), Beams(size))
    for row, table in zip(together, tables, strict=True):
        same(row, search(TableSession([table]), Beams(size))[0])


def test_prompts_of_unequal_lengths() -> None:
    tables = [drawn(1, VOCAB), drawn(2, VOCAB)]
    prompt, lengths = np.array([[START, 5, 5], [START, 0, 0]], np.int32), np.array([3, 1], np.int32)
    found = beam_search(TableSession(tables), Branches(), prompt, RULES, Beams(3), lengths=lengths)
    for row, table in zip(found, tables, strict=True):
        same(row, search(TableSession([table]), Beams(3))[0])


def test_patience_waits_for_better_texts() -> None:
    # A short text ends first; a longer one of higher mean log-probability ends later.
    table = {
        (): {0: 0.5, 1: 0.5},
        (0,): {END: 0.6, 2: 0.4},
        (1,): {2: 0.99},
        (1, 2): {2: 0.99},
        (1, 2, 2): {END: 0.99},
    }
    for patience, tokens in ((0.5, (1, 2)), (1.0, (1, 2, 2)), (2.0, (1, 2, 2))):
        session = TableSession([written(table, VOCAB)])
        assert search(session, Beams(2, patience))[0].tokens == tokens
        assert session.made[0].steps == {0.5: 1, 1.0: 3, 2.0: 4}[patience]


def test_what_has_not_ended_is_taken_where_too_little_has() -> None:
    endless = written({(0,) * n: {0: 0.7, 1: 0.3} for n in range(6)}, VOCAB)
    (found,) = search(TableSession([endless]), Beams(3))
    same(found, Decoded((0,) * 5, 5 * np.log(0.7)))


def test_caches_move_only_where_prefixes_do() -> None:
    # Two words, either certain of what follows: after the first step no row changes.
    certain = {(): {0: 0.6, 1: 0.4}} | {(word, *[2] * n): {2: 1.0} for word in (0, 1) for n in range(5)}
    session = TableSession([written(certain, VOCAB)])
    search(session, Beams(2))
    assert session.made[0].moved == []
    session = TableSession([written(GARDEN, VOCAB)])
    search(session, Beams(3, 3.0))
    assert session.made[0].moved
    assert all(any(row == source for row, source in enumerate(moved)) for moved in session.made[0].moved)


def test_fewer_tokens_than_beams() -> None:
    (found,) = search(TableSession([written({(): {1: 1.0}, (1,): {END: 1.0}}, VOCAB)]), Beams(12))
    assert found.tokens == (1,)
    only = replace(RULES, suppress=tuple(n for n in range(VOCAB) if n not in (1, END)))
    (found,) = search(TableSession([drawn(1, VOCAB)]), Beams(12), only, max_tokens=2)
    assert found.tokens in {(1,), (1, 1)}


def test_one_token_takes_no_step() -> None:
    session = TableSession([drawn(3, VOCAB)])
    (found,) = search(session, Beams(4), max_tokens=1)
    assert len(found.tokens) == 1
    assert not session.made


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_refused(bad: float) -> None:
    table = drawn(0, VOCAB)

    def broken(seen: tuple[int, ...]) -> np.ndarray:
        return np.where(np.arange(VOCAB) == 2, np.float32(bad), table(seen)) if seen else table(seen)

    with pytest.raises(NestError, match=f"best logit is {bad}, so no token can be chosen"):
        search(TableSession([broken]), Beams(2))


def test_texts_are_ranked_for_their_length() -> None:
    short, long = Decoded((1,), -1.5), Decoded((1, 2, 3), -3.0)
    assert likeliest([short, long]) is long  # -1.5 and -1 a token
    assert likeliest([short, long], 0.0) is short
    assert likeliest([short, long], 0.5) is short  # -1.5, and -3 / (8 / 6) ** 0.5
    assert likeliest([replace(short, log_probability=-2.8), long], 1.0) is long  # -2.8 and -2.25
    assert likeliest([Decoded((), -1.2), long]) is long
    assert likeliest([short, replace(short, tokens=(2,))]) is short


def test_the_likeliest_ids_are_found_in_order() -> None:
    scores = np.array([[1, 3, 3, 0, 2, 3], [0, -np.inf, 1, 5, 4, -np.inf]], np.float32)
    values, ids = top(scores, 4)
    assert ids.tolist() == [[1, 2, 5, 4], [3, 4, 2, 0]]
    for row, chosen, found in zip(scores, ids, values, strict=True):
        np.testing.assert_allclose(found, log_softmax(row)[chosen], rtol=1e-6)
    assert top(scores, 9)[1].shape == (2, 6)


def test_sessions_are_lent_again() -> None:
    session, branches = TableSession([drawn(1, VOCAB)]), Branches()
    first, second = (
        [beam_search(session, branches, PROMPT, RULES, Beams(size))[0] for size in (3, 2)] for _ in range(2)
    )
    assert first == second
    assert [len(made.tables) for made in session.made] == [3, 2]
    # Two are kept, those that were used last.
    beam_search(session, branches, PROMPT, RULES, Beams(4))
    beam_search(session, branches, PROMPT, RULES, Beams(2))
    assert [len(made.tables) for made in session.made] == [3, 2, 4]
    beam_search(session, branches, PROMPT, RULES, Beams(3))
    assert len(session.made) == 4


def test_a_session_that_failed_is_not_lent_again() -> None:
    session, branches = TableSession([drawn(1, VOCAB)]), Branches()
    session.prefill(PROMPT)
    for _ in range(2):
        with pytest.raises(MemoryError), branches.lend(session, [0, 0]):
            raise MemoryError
    assert len(session.made) == 2
