"""Recordings decoded several windows at a time, by scripted sessions: order, what is left, what is decoded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError
from nest.tasks._row_attempts import rows_for
from nest.tasks.mel import log_mel
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber, Transcript

from .scripted import ENGLISH, GERMAN, START, TRANSCRIBE, TRANSLATE, ScriptedSession
from .test_long_form import MEL, NO_SPEECH, PREVIOUS, RULES, said, times

LOOP = " no no no no no no no no no no no no"


@dataclass
class Says:
    """What a window says when it is decoded, and how sure the model is; `silence` is its probability of no speech."""

    tokens: tuple[int, ...]
    ahead: float = 20.0
    silence: float = 0.01


class Row:
    """A window: what it says at each attempt, the last of them again and again."""

    def __init__(self, attempts: Sequence[Says]) -> None:
        self.attempts = list(attempts)

    def next(self) -> None:
        if len(self.attempts) > 1:
            self.attempts.pop(0)


class Hall:
    """A model whose sessions have several rows; the windows say what is written for them, in the order of listening."""

    def __init__(self, *windows: Says | tuple[int, ...] | list[Says]) -> None:
        self.left = [w if isinstance(w, list) else [w if isinstance(w, Says) else Says(w)] for w in windows]
        self.sessions: list[Rows] = []
        self.heard: list[list[np.ndarray]] = []

    def new_session(self, *, Batch: int, **options: Any) -> Rows:
        return Rows(self, Batch)


class Rows(ScriptedSession):
    def __init__(self, hall: Hall, batch: int) -> None:
        super().__init__(vocabulary=FIRST + 101)
        self.hall, self.batch, self.begun = hall, batch, False
        self.rows: list[Row] = []
        hall.sessions.append(self)

    def listen(self, mel: np.ndarray) -> np.ndarray:
        assert len(mel) == self.batch
        own = [
            index for index in range(len(mel)) if not any((mel[i] == mel[index]).all() for i in range(index))
        ]
        self.hall.heard.append([mel[i] for i in own])
        fresh = {i: Row(self.hall.left.pop(0)) for i in own}
        self.rows = [fresh.get(index, fresh[0]) for index in range(len(mel))]
        self.begun = False
        return np.zeros((len(mel), 1), np.float32)

    def fork(self, rows: list[int]) -> Rows:
        """The rows as they are, none of which has a part in this session any more."""
        other = Rows(self.hall, len(rows))
        other.rows, other.begun = [self.rows[row] for row in rows], self.begun
        return other

    def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        assert len(tokens) == self.batch
        if self.begun:  # a text was decoded before: this is another attempt
            for row in set(self.rows):
                row.next()
            self.begun = False
        count = tokens.shape[1] if lengths is None else int(lengths[0])
        self.scripts = [[row.attempts[0].tokens for row in self.rows]]
        super().prefill(tokens[:, :count])
        return self.logits()

    def step(self, token: np.ndarray, pos: np.ndarray) -> np.ndarray:
        self.begun = True
        return super().step(token, pos)

    def logits(self) -> np.ndarray:
        logits = super().logits()
        for row, of in zip(logits, self.rows, strict=True):
            row[row == 10] = of.attempts[0].ahead
            others = np.log(np.exp(np.delete(row.astype(float), NO_SPEECH)).sum())
            silence = of.attempts[0].silence
            if self.position == self.begin:
                row[NO_SPEECH] = others + np.log(silence / (1 - silence))
        return logits


FIRST = RULES.first_timestamp


def loud(*spans: float) -> np.ndarray:
    """Seconds that are loud, silent, loud ...; no moment is like another."""
    rng = np.random.default_rng(1)
    parts = [rng.uniform(-1, 1, round(s * MEL.rate)) * (1, 0)[i % 2] for i, s in enumerate(spans)]
    return np.concatenate(parts).astype(np.float32)


FOUR = loud(1.6, 0.2, 1.6, 0.2, 1.6, 0.2, 1.6)
"""Four windows, cut at about 1.7, 3.5 and 5.3 s."""


def batched(
    tokenizer: Tokenizer, hall: Hall, audio: np.ndarray, rules: GenerationRules = RULES, **wishes: Any
) -> Transcript:
    return Transcriber(hall, tokenizer, rules, MEL)(audio, **{"batch_size": 2, **wishes})


def test_windows_are_rows_and_their_texts_in_order(tokenizer: Tokenizer) -> None:
    hall = Hall(*[said(0.0, text, 1.6) for text in (" a", " b", " c", " d")])
    made = batched(tokenizer, hall, FOUR)
    assert made.text == "a b c d"
    assert [session.batch for session in hall.sessions] == [2]
    assert [len(batch) for batch in hall.heard] == [2, 2]
    starts = [start for start, _, _ in times(made)]
    assert starts == pytest.approx([0, 1.8, 3.6, 5.4], abs=0.1)
    assert made.duration == pytest.approx(7.0)
    assert all(segment.start < segment.end <= made.duration for segment in made.segments)
    assert made.tokens == tuple(token for segment in made.segments for token in segment.tokens)


@pytest.mark.parametrize(("size", "batches"), [(2, [2]), (3, [3, 1]), (4, [4]), (5, [4]), (64, [4])])
def test_the_text_does_not_depend_on_the_size(tokenizer: Tokenizer, size: int, batches: list[int]) -> None:
    hall = Hall(*[said(0.0, text, 1.6) for text in (" a", " b", " c", " d")])
    made = batched(tokenizer, hall, FOUR, batch_size=size)
    assert made.text == "a b c d"
    assert [session.batch for session in hall.sessions] == batches


def test_few_sizes_of_sessions_are_asked_for() -> None:
    assert [rows_for(count, 6) for count in range(1, 7)] == [1, 2, 4, 4, 6, 6]
    assert [rows_for(count, 8) for count in range(1, 9)] == [1, 2, 4, 4, 8, 8, 8, 8]


def test_sessions_are_used_again(tokenizer: Tokenizer) -> None:
    hall = Hall(*[said(0.0, " a", 1.6)] * 8)
    made = Transcriber(hall, tokenizer, RULES, MEL)
    assert [made(FOUR, batch_size=2).text for _ in range(2)] == ["a a a a"] * 2
    assert len(hall.sessions) == 1


def test_what_a_window_leaves_is_decoded_with_the_next_ones(tokenizer: Tokenizer) -> None:
    hall = Hall(
        said(0.0, " a", 0.5, 0.5, " b"),  # a text was begun, and is heard from its beginning
        said(0.0, " c", 1.6),
        said(0.0, " b", 1.1),
        said(0.0, " d", 0.4, 0.4),  # another may have been
        said(0.0, " e", 1.2),
        said(0.0, " f", 1.5),
    )
    made = batched(tokenizer, hall, FOUR)
    assert made.text == "a b c d e f"
    assert [len(batch) for batch in hall.heard] == [2, 2, 2]
    starts = [start for start, _, _ in times(made)]
    assert starts == sorted(starts)
    assert starts[1] == pytest.approx(0.5)
    np.testing.assert_array_equal(hall.heard[1][0][:, :100], log_mel(FOUR[500:1705], MEL)[0][:, :100])


def test_what_is_begun_in_the_last_second_of_a_window_is_told(tokenizer: Tokenizer) -> None:
    hall = Hall(said(0.0, " a", 1.0, 1.0, " b"), said(0.0, " c", 1.0, 1.0))
    made = batched(tokenizer, hall, loud(1.6, 0.2, 1.6))
    assert [(start, text) for start, _, text in times(made)] == [
        (0.0, " a"), (1.0, " b"), (pytest.approx(1.8, abs=0.05), " c"),
    ]  # fmt: skip
    assert times(made)[1][1] == pytest.approx(1.7, abs=0.05)
    assert len(hall.heard) == 1


def test_only_the_row_that_is_not_believed_is_decoded_again(tokenizer: Tokenizer) -> None:
    hall = Hall(
        said(0.0, " a", 1.6),
        [Says(said(0.0, LOOP, 1.6)), Says(said(0.0, " b", 1.6), ahead=60)],
        said(0.0, " c", 1.6),
        said(0.0, " d", 1.6),
    )
    made = batched(tokenizer, hall, FOUR, batch_size=4)
    assert made.text == "a b c d"
    assert [segment.temperature for segment in made.segments] == [0.0, 0.2, 0.0, 0.0]
    assert [session.batch for session in hall.sessions] == [4, 1]
    assert len(hall.heard) == 1


def test_rows_that_are_not_believed_are_fewer_and_fewer(tokenizer: Tokenizer) -> None:
    loop = Says(said(0.0, LOOP, 1.6), ahead=60)
    hall = Hall(
        [loop, Says(said(0.0, " a", 1.6), ahead=60)],
        said(0.0, " b", 1.6),
        [loop, loop, Says(said(0.0, " c", 1.6), ahead=60)],
        [loop, loop, loop, Says(said(0.0, " d", 1.6), ahead=60)],
    )
    made = batched(tokenizer, hall, FOUR, batch_size=4)
    assert made.text == "a b c d"
    assert [segment.temperature for segment in made.segments] == [0.2, 0.0, 0.4, 0.6]
    # Three rows are four, as few sizes as there are; what a row that is done with says is not looked at.
    assert [session.batch for session in hall.sessions] == [4, 2, 1]


def test_a_row_in_which_nobody_speaks_has_no_text(tokenizer: Tokenizer) -> None:
    unlikely = said(0.0, " what was that", 1.6)
    hall = Hall(
        said(0.0, " a", 1.6), Says(unlikely, ahead=4.75, silence=0.7),
        Says(unlikely, ahead=4.75, silence=0.1), said(0.0, " d", 1.6),
    )  # fmt: skip
    made = batched(tokenizer, hall, FOUR, batch_size=4, temperature=0)
    assert made.text == "a what was that d"
    assert [round(segment.start) for segment in made.segments] == [0, 4, 5]


def test_each_window_is_told_the_initial_prompt_and_nothing_else(tokenizer: Tokenizer) -> None:
    hall = Hall(*[said(0.0, " a", 1.6)] * 4)
    batched(tokenizer, hall, FOUR, initial_prompt="names")
    told = [PREVIOUS, *tokenizer.encode(" names"), START]
    assert [prompt.tolist() for prompt in hall.sessions[0].prompts] == [[told, told]] * 2


def test_one_window_is_one_row(tokenizer: Tokenizer) -> None:
    hall = Hall(said(0.1, " a", 1.0))
    assert times(batched(tokenizer, hall, loud(1.5), batch_size=8, timestamps=True)) == [(0.1, 1.0, " a")]
    assert [session.batch for session in hall.sessions] == [1]


def test_silence_is_not_decoded(tokenizer: Tokenizer) -> None:
    hall = Hall()
    assert batched(tokenizer, hall, np.zeros(9000, np.float32)).text == ""
    assert batched(tokenizer, hall, np.zeros(900, np.float32), timestamps=True).text == ""
    assert not hall.sessions
    with pytest.raises(InputError, match="no samples"):
        batched(tokenizer, hall, np.zeros(0, np.float32))


def test_channels_are_heard_by_themselves(tokenizer: Tokenizer) -> None:
    hall = Hall(*[said(0.0, text, 1.6) for text in (" a", " b", " c", " d")])
    left = loud(1.6, 0.2, 1.6)
    made = batched(tokenizer, hall, np.stack([left, left[::-1].copy()]), channels="split")
    assert [(segment.channel, segment.text) for segment in made.segments if segment.channel == 0] == [
        (0, " a"), (0, " b"),
    ]  # fmt: skip
    assert [segment.text for segment in made.segments if segment.channel == 1] == [" c", " d"]
    starts = [segment.start for segment in made.segments]
    assert starts == sorted(starts)


def test_the_language_is_that_of_the_first_window(tokenizer: Tokenizer) -> None:
    several = replace(
        RULES,
        languages={"en": ENGLISH, "de": GERMAN},
        tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    )

    class German(Rows):
        def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
            logits = super().prefill(tokens, lengths)
            logits[0, GERMAN], logits[1:, ENGLISH] = 9, 9
            return logits

    class Foreign(Hall):
        def new_session(self, *, Batch: int, **options: Any) -> Rows:
            return German(self, Batch)

    hall = Foreign(*[said(0.0, " a", 1.6)] * 4)
    made = batched(tokenizer, hall, FOUR, several)
    assert made.language == "de"
    asked = [prompt.tolist() for prompt in hall.sessions[0].prompts]
    assert asked == [[[START]] * 2, *[[[START, GERMAN, TRANSCRIBE]] * 2] * 2]


def test_words_of_rows(tokenizer: Tokenizer) -> None:
    """Token i of a text is heard in the ten positions from 10 i on, as in the tests of words."""
    rules = replace(RULES, alignment_heads=((0, 0),))

    class Aligned(Rows):
        def align(self, tokens: np.ndarray) -> np.ndarray:
            assert len(tokens) == self.batch
            weights = np.full((len(tokens), 2, tokens.shape[1], 100), 1e-3, np.float32)
            for at in range(2, tokens.shape[1] + 1):
                weights[:, :, at - 1, 10 * (at - 2) : 10 * (at - 1)] = 1
            return weights / weights.sum(-1, keepdims=True)

        def decode(self, tokens: np.ndarray, audio: Any) -> np.ndarray:
            assert len(tokens) == len(audio) == 1
            return np.zeros((*tokens.shape, self.vocabulary), np.float32)

    class Listeners(Hall):
        def new_session(self, *, Batch: int, **options: Any) -> Rows:
            return Aligned(self, Batch)

    hall = Listeners(said(0.0, " a", 1.6), said(0.0, " b cd", 1.6), said(), said(0.0, " e", 1.6))
    made = batched(tokenizer, hall, FOUR, rules, batch_size=4, word_timestamps=True)
    assert [[word.text for word in segment.words] for segment in made.segments] == [
        [" a"],
        [" b", " cd"],
        [" e"],
    ]
    starts = [word.start for segment in made.segments for word in segment.words]
    assert starts == pytest.approx([0.2, 1.9, 2.3, 5.5], abs=0.25)


def test_hours_are_heard_in_bounded_memory(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a batch of windows is read before its first text comes."""

    class Endless(Hall):
        def new_session(self, *, Batch: int, **options: Any) -> Rows:
            self.left = [[Says(said(0.0, " a", 1.2, 1.2))]] * 1000
            self.heard = []
            return super().new_session(Batch=Batch, **options)

    hall = Endless()
    stream = Transcriber(hall, tokenizer, RULES, MEL).stream(loud(*[1.6, 0.2] * 100), batch_size=4)
    ahead = [stream.position - segment.start for segment in stream]
    assert len(ahead) >= 100
    assert max(ahead) <= 4 * MEL.window_seconds


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"batch_size": 0}, "batch_size=0 is no number of windows; expected an integer from 1, or None"),
        ({"batch_size": 2.5}, "batch_size=2.5 is no number"),
        ({"batch_size": True}, "batch_size=True is no number"),
        ({"batch_size": 4, "timestamps": False}, "batch_size=4 with timestamps=False"),
    ],
)
def test_sizes_that_mean_nothing(tokenizer: Tokenizer, wish: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        batched(tokenizer, Hall(), FOUR, **wish)
