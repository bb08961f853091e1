"""Beams and the best of several texts as wishes of a transcriber, where every distribution is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.errors import InputError
from nest.tasks._branches import Branches
from nest.tasks.beams import likeliest
from nest.tasks.decode import decode
from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber, Transcript

from .scripted import END, FIRST_TIME, NO_TIMES, START, tokens_of
from .tables import Logits, TableSession, drawn, written

VOCAB = FIRST_TIME + 101
MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)
RULES = GenerationRules(
    start=START, end=END, prompt=(START, NO_TIMES), no_timestamps=NO_TIMES, first_timestamp=FIRST_TIME, positions=200,
    max_tokens=90, no_speech=255,
)  # fmt: skip
A, B, C = (tokens_of(letter)[0] for letter in "abc")
ZERO, LAST = FIRST_TIME, FIRST_TIME + 100


class Model:
    """Makes the session that it was given, once."""

    def __init__(self, table: Logits) -> None:
        self.session = TableSession([table])
        self.asked: list[int] = []

    def new_session(self, *, Batch: int) -> TableSession:
        self.asked.append(Batch)
        return self.session


def heard(tokenizer: Tokenizer, model: Model, seconds: float, **wishes: Any) -> Transcript:
    audio = np.random.default_rng(0).uniform(-1, 1, round(seconds * MEL.rate)).astype(np.float32)
    return Transcriber(model, tokenizer, RULES, MEL)(audio, **wishes)


def garden(*before: int, after: int | None = None) -> Logits:
    """`ab`, of probability 0.6 * 0.5, is what greedy finds, and `ca`, of 0.4 * 0.9, is likelier."""
    ends: list[int] = [END] if after is None else [after, END]
    table = {before[:n]: {token: 1.0} for n, token in enumerate(before)}
    table |= {
        before: {A: 0.6, C: 0.4},
        (*before, A): {B: 0.5, C: 0.3, A: 0.2},
        (*before, C): {A: 0.9, B: 0.1},
    }
    for text in ((A, B), (A, C), (A, A), (C, A), (C, B)):
        table |= {(*before, *text, *ends[:n]): {token: 1.0} for n, token in enumerate(ends)}
    return written(table, VOCAB)


def test_a_short_recording_is_searched(tokenizer: Tokenizer) -> None:
    assert heard(tokenizer, Model(garden()), 1.5).text == "ab"
    assert heard(tokenizer, Model(garden()), 1.5, beam_size=1).text == "ab"
    made = heard(tokenizer, Model(garden()), 1.5, beam_size=2)
    assert made.text == "ca"
    assert made.segments[0].mean_log_probability == pytest.approx(np.log(0.36) / 3, rel=1e-4)


def test_every_window_of_a_long_one_is_and_sessions_serve_again(tokenizer: Tokenizer) -> None:
    model = Model(garden(ZERO, after=LAST))
    assert heard(tokenizer, model, 5.5).text == "ababab"
    assert model.session.made == []
    made = heard(tokenizer, model, 5.5, beam_size=2)
    assert made.text == "cacaca"
    assert [(s.start, s.end, s.temperature) for s in made.segments] == [(0, 2, 0), (2, 4, 0), (4, 5.5, 0)]
    assert [len(session.tables) for session in model.session.made] == [2]
    assert model.asked == [1, 1]


def test_sessions_of_beams_serve_the_next_recording(tokenizer: Tokenizer) -> None:
    model = Model(garden())
    speech = Transcriber(model, tokenizer, RULES, MEL)
    audio = np.ones(1500, np.float32)
    for _ in range(3):
        assert speech(audio, beam_size=2).text == "ca"
    assert [len(session.tables) for session in model.session.made] == [2]
    assert model.asked == [1]


def test_patience_and_length_penalty_are_those_of_the_search(tokenizer: Tokenizer) -> None:
    table = {
        (): {A: 0.5, B: 0.5},
        (A,): {END: 0.6, C: 0.4},
        (B,): {C: 0.99},
        (B, C): {C: 0.99},
        (B, C, C): {END: 0.99},
    }
    model = Model(written(table, VOCAB))
    assert heard(tokenizer, model, 1.5, beam_size=2).text == "bcc"
    # One ended text is enough, and what has not ended by then is a text as it stands.
    assert heard(tokenizer, model, 1.5, beam_size=2, patience=0.5).text == "bc"
    table = {
        (): {A: 0.6, B: 0.4},
        (A,): {END: 0.6, C: 0.4},
        (B,): {C: 0.8, A: 0.2},
        (B, C): {C: 0.9, A: 0.1},
        (B, C, C): {END: 1.0},
    }
    assert heard(tokenizer, Model(written(table, VOCAB)), 1.5, beam_size=2).text == "bcc"
    for penalty, text in ((0.0, "a"), (0.2, "a"), (1.0, "bcc")):
        model = Model(written(table, VOCAB))
        assert heard(tokenizer, model, 1.5, beam_size=2, length_penalty=penalty).text == text


def letters(seen: tuple[int, ...]) -> np.ndarray:
    """A random distribution of letters and the end."""
    others = ~np.isin(np.arange(VOCAB), [*tokens_of("abcdefghijklmnopqrstuvwxyz"), END])
    return np.where(others, np.float32(-40), drawn(3, VOCAB, 1.0)(seen))


@pytest.mark.parametrize("penalty", [None, 0.0])
def test_the_best_of_several_texts_is_taken(tokenizer: Tokenizer, penalty: float | None) -> None:
    """Of a session's rows, which are drawn at once and each as it would be by itself."""
    session = TableSession([letters] * 5)
    prompt = np.array([[START, NO_TIMES]] * 5, np.int32)
    rows = decode(session, prompt, RULES, temperature=1.0, seed=1, max_tokens=6)
    assert len({row.tokens for row in rows}) == 5
    best = likeliest(rows, penalty)
    assert best is not rows[0]
    wishes = {"temperature": 1.0, "seed": 1, "max_tokens": 6, "no_speech_threshold": None}
    model = Model(letters)
    many = {"best_of": 5, "length_penalty": penalty, **wishes}
    for _ in range(2):
        made = heard(tokenizer, model, 1.5, **many)
        assert made.segments[0].mean_log_probability == pytest.approx(best.mean_log_probability, rel=1e-5)
        assert made.tokens == tuple(token for token in best.tokens if token < END)
        assert made.segments[0].temperature == 1.0
    assert model.session.prefills == 0  # the rows read the prompt themselves, of what was listened to once
    # One is what is drawn without.
    first = tuple(token for token in rows[0].tokens if token < END)
    assert heard(tokenizer, model, 1.5, best_of=1, **wishes).tokens == first
    assert heard(tokenizer, model, 1.5, **wishes).tokens == first
    assert heard(tokenizer, model, 1.5, **{**many, "seed": 8}).tokens != made.tokens


def test_beams_are_for_temperature_0_and_several_texts_for_those_above(tokenizer: Tokenizer) -> None:
    loop = (ZERO, *[A] * 60, LAST, END)
    table = {loop[:n]: {token: 1.0} for n, token in enumerate(loop)}
    model = Model(written(table, VOCAB))
    made = heard(tokenizer, model, 1.5, timestamps=True, beam_size=3, best_of=4, temperature=[0, 0.2, 0.4])
    assert made.segments[0].temperature == 0.4
    assert [len(session.tables) for session in model.session.made] == [3, 4]


def test_without_wishes_nothing_is_forked(tokenizer: Tokenizer) -> None:
    model = Model(garden(ZERO, after=LAST))
    heard(tokenizer, model, 3, temperature=[0.0, 0.5])
    assert not model.session.made
    assert isinstance(Transcriber(model, tokenizer, RULES, MEL).branches, Branches)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"beam_size": 0}, "beam_size=0: expected an integer from 1 to 100, or None"),
        ({"beam_size": 2.0}, "beam_size=2.0: expected an integer"),
        ({"beam_size": True}, "beam_size=True: expected an integer"),
        ({"best_of": -1}, "best_of=-1: expected an integer from 1"),
        ({"beam_size": 10**9}, "beam_size=1000000000: expected an integer from 1 to 100"),
        ({"best_of": 101}, "best_of=101: expected an integer from 1 to 100"),
        ({"beam_size": 2, "patience": 1e308}, r"patience=1e\+308: expected a number"),
        ({"temperature": 10**400}, "expected a number from 0"),
        ({"no_speech_threshold": -(10**400)}, "is no threshold"),
        ({"beam_size": 2, "patience": 0}, "patience=0: expected a number over 0"),
        ({"beam_size": 2, "patience": float("nan")}, "patience=nan: expected a number"),
        ({"patience": 1.0}, "patience=1.0 is of a beam search: give beam_size as well"),
        ({"best_of": 2, "patience": 1.0}, "give beam_size as well"),
        ({"beam_size": 1, "patience": 0.5}, "beam_size=1 with patience=0.5 ends before any text has"),
        ({"beam_size": 2, "length_penalty": 1.5}, "length_penalty=1.5: expected a number from 0 to 1"),
        ({"beam_size": 2, "length_penalty": "x"}, "length_penalty='x': expected"),
        ({"length_penalty": 0.5}, "length_penalty=0.5 ranks texts.*give beam_size or best_of"),
        ({"beam_size": 2, "temperature": 0.2}, "beam_size=2 is for temperature 0, and temperature=0.2 has none"),
        ({"best_of": 5, "temperature": 0}, "best_of=5 is for temperatures over 0, and temperature=0 has none"),
    ],
)  # fmt: skip
def test_wishes_that_mean_nothing(tokenizer: Tokenizer, wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        heard(tokenizer, Model(garden()), 1.5, **wishes)
