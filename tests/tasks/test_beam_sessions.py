"""Beam search over sessions of every backend: the texts of the reference backend's logits, by entries and by steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from nest.tasks._branches import Branches
from nest.tasks.beams import Beams, beam_search
from nest.tasks.decode import Decoded, decode
from nest.tasks.rules import GenerationRules

from ..speech import BACKENDS, CAPACITY, mel_of, model_on, padded

# Of 17 ids: words 0 to 6, the end, two control tokens, and seven times.
END, FIRST = 7, 10
RULES = GenerationRules(
    start=8, end=END, prompt=(8, 9), no_timestamps=9, first_timestamp=FIRST, positions=CAPACITY, max_tokens=9,
    suppress=(3, 8, 9), begin_suppress=(5, END),
)  # fmt: skip
TIMED = replace(RULES, suppress=(3, 8))
TOKENS, LENGTHS = padded([[1, 2], [4, 9, 6, 7], [9]])
BEAMS = Beams(4, 1.5, 0.6)


class Steps:
    """A session of which no more is known than its steps."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.numpy, self.prefill, self.step = session.numpy, session.prefill, session.step
        self.reorder = session.reorder

    def fork(self, rows: list[int]) -> Steps:
        return Steps(self.session.fork(rows))

    def take_from(self, other: Steps, rows: list[int]) -> None:
        self.session.take_from(other.session, rows)


def heard(backend: str, seed: int = 2) -> Any:
    session = model_on(backend).new_session(Batch=3)
    session.listen(mel_of(3, seed))
    return session


def search(session: Any, branches: Branches, times: bool, beams: Beams = BEAMS) -> list[Decoded]:
    rules = TIMED if times else RULES
    return beam_search(session, branches, TOKENS, rules, beams, lengths=LENGTHS, timed=times)


@cache
def expected(times: bool, seed: int = 2) -> list[Decoded]:
    return search(Steps(heard("reference", seed)), Branches(), times)


def same(got: list[Decoded], want: list[Decoded]) -> None:
    assert [row.tokens for row in got] == [row.tokens for row in want]
    np.testing.assert_allclose([r.log_probability for r in got], [r.log_probability for r in want], rtol=2e-3)


def counted(session: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each entry is called on sessions of its kind from here on."""
    calls: Counter[str] = Counter()
    original = type(session).call

    def call(self: Any, name: str, *rest: Any) -> Any:
        calls[name] += 1
        return original(self, name, *rest)

    monkeypatch.setattr(type(session), "call", call)
    return calls


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_texts_are_the_same_on_every_backend(
    backend: str, times: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, branches = heard(backend), Branches()
    calls = counted(session, monkeypatch)
    found = search(session, branches, times)
    step = "step_top_timed" if times else "step_top"
    assert calls == {"prefill_top": 1, step: calls[step]}
    assert 1 <= calls[step] < RULES.max_tokens
    same(found, expected(times))
    greedy = decode(session, TOKENS, TIMED if times else RULES, lengths=LENGTHS, timed=times)
    assert [row.tokens for row in greedy] != [row.tokens for row in found]
    same(search(session, Branches(), times, Beams(1)), greedy)


@pytest.mark.parametrize("backend", ["torch", "jax", "onnx"])
def test_what_is_lent_again_holds_the_next_recording(backend: str) -> None:
    session, branches = heard(backend), Branches()
    search(session, branches, False)
    session.listen(mel_of(3, 11))
    same(search(session, branches, False), expected(False, 11))


def test_more_beams_than_entries_give_candidates_for_are_searched_by_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = heard("torch")
    calls = counted(session, monkeypatch)
    search(session, Branches(), False, Beams(15))
    assert set(calls) == {"prefill_top", "step_top"}
    calls.clear()
    search(session, Branches(), False, Beams(16))
    assert set(calls) == {"prefill", "step"}


def test_on_jax_a_second_window_compiles_nothing() -> None:
    model, branches = model_on("jax"), Branches()
    for number in range(2):
        before = dict(model.compilations)
        session = heard("jax", number)
        search(session, branches, True)
        search(session, branches, False)
    assert model.compilations == before
    assert model.compilations["step_top"] >= 1
