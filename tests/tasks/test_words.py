"""Words with times: of scripted sessions, and of a small model on every backend."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import InputError, NestError
from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber
from nest.tasks.words import Word, window_words

from ..speech import BACKENDS, CAPACITY, SMALL, VOCAB, mel_of, weights
from .scripted import END, ENGLISH, GERMAN, TRANSCRIBE, TRANSLATE, ScriptedModel, ScriptedSession, tokens_of

MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)
POSITIONS = 100  # of 20 ms


class Hearing(ScriptedSession):
    """A scripted session that hears token i of a text in the ten positions from 10 i on."""

    said: np.ndarray

    def align(self, tokens: np.ndarray) -> np.ndarray:
        if tokens.dtype != np.int32 or tokens.shape[0] != 1:
            raise TypeError((tokens.dtype, tokens.shape))
        self.said = tokens
        weights = np.full((1, 2, tokens.shape[1], POSITIONS), 1e-3, np.float32)
        for row in range(tokens.shape[1]):
            at = 10 * (row - self.begin + 1)
            weights[0, :, row, max(at, 0) : max(at + 10, 0)] = 1
        return weights / weights.sum(-1, keepdims=True)

    def decode(self, tokens: np.ndarray, audio: Any) -> np.ndarray:
        """Logits under which each next token has half of the probability of all text tokens together."""
        logits = np.zeros((*tokens.shape, self.vocabulary), np.float32)
        for row, token in enumerate(tokens[0, 1:]):
            logits[0, row, token] = np.log(END - 1)
        logits[..., END:] = 50  # no text, so it has no part in it
        return logits


def seconds(count: float) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, round(count * MEL.rate)).astype(np.float32)


@pytest.fixture
def aligned(rules: GenerationRules) -> GenerationRules:
    return replace(rules, alignment_heads=((0, 1), (2, 0)))


def test_words_of_a_window(tokenizer: Tokenizer, aligned: GenerationRules) -> None:
    session = Hearing([tokens_of(" ab c.")])
    made = Transcriber(ScriptedModel(session), tokenizer, aligned, MEL)(seconds(1.5), word_timestamps=True)
    first, second = made.segments[0].words
    assert (first.text, second.text) == (" ab", " c.")
    # Here a space is a token of its own, of 0.2 s as each; neither it nor the mark is spoken.
    assert [first.start, first.end, second.start, second.end] == pytest.approx([0.2, 0.6, 0.8, 1.0], abs=0.06)
    assert first.probability == pytest.approx(0.5)
    # Prompt, text and end; then end tokens, which nothing before them sees.
    said = session.said[0].tolist()
    assert said[:9] == [*aligned.prompt, *tokens_of(" ab c."), END]
    assert set(said[9:]) <= {END}


def test_words_of_later_windows_come_later(tokenizer: Tokenizer, aligned: GenerationRules) -> None:
    session = Hearing([tokens_of(" a")], [tokens_of(" b")])
    made = Transcriber(ScriptedModel(session), tokenizer, aligned, MEL)(
        seconds(2.3), word_timestamps=True, timestamps=False
    )
    for segment in made.segments:
        (word,) = segment.words
        assert segment.start <= word.start < word.end <= segment.end
    assert made.segments[1].start == 2.0


def test_words_are_not_computed_unasked(tokenizer: Tokenizer, aligned: GenerationRules) -> None:
    session = ScriptedSession([tokens_of(" a")])  # without align
    made = Transcriber(ScriptedModel(session), tokenizer, aligned, MEL)(seconds(1))
    assert made.segments[0].words == ()


@pytest.mark.parametrize("text", [" ", " .", " ♪"])
def test_marks_alone_are_no_text(tokenizer: Tokenizer, aligned: GenerationRules, text: str) -> None:
    session = ScriptedSession([tokens_of(text)])
    made = Transcriber(ScriptedModel(session), tokenizer, aligned, MEL)(seconds(1), word_timestamps=True)
    assert (made.text, made.segments) == ("", ())


def test_a_translation_has_the_words_of_english(tokenizer: Tokenizer, aligned: GenerationRules) -> None:
    rules = replace(
        aligned,
        languages={"en": ENGLISH, "zh": GERMAN},
        tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    )
    counts = []
    for task in ("transcribe", "translate"):
        made = Transcriber(ScriptedModel(Hearing([tokens_of("好好")])), tokenizer, rules, MEL)
        counts.append(len(made(seconds(1), language="zh", task=task, word_timestamps=True).segments[0].words))
    assert counts == [2, 1]


def test_a_model_without_alignment_heads_is_refused_before_any_work(
    tokenizer: Tokenizer, rules: GenerationRules
) -> None:
    model = ScriptedModel()
    with pytest.raises(
        InputError, match=r"cannot say when a word was spoken: .* generation\.alignment_heads"
    ):
        Transcriber(model, tokenizer, rules, MEL)("no such file", word_timestamps=True)
    assert model.batches == []


def test_attention_that_is_no_number_is_told(tokenizer: Tokenizer, aligned: GenerationRules) -> None:
    class Broken(Hearing):
        def align(self, tokens: np.ndarray) -> np.ndarray:
            return np.full((1, 2, tokens.shape[1], POSITIONS), np.nan, np.float32)

    made = Transcriber(ScriptedModel(Broken([tokens_of(" a")])), tokenizer, aligned, MEL)
    with pytest.raises(NestError, match="attention that word times come from is NaN"):
        made(seconds(1), word_timestamps=True)


class Letters:
    """A tokenizer of which every token is a letter, and every third begins a word."""

    def pieces(self, ids: Any) -> list[tuple[str, tuple[int, ...]]]:
        return [((" " if i % 3 == 0 else "") + chr(97 + token), (token,)) for i, token in enumerate(ids)]


@cache
def small_words(backend: str) -> tuple[Word, ...]:
    """Of random weights; the window is 15 positions of 20 ms, and 0.25 s of it are recorded."""
    # Livelier weights attend to one position each, which leaves rounding to decide between the others.
    calm = {path: array / 4 if array.ndim > 1 else array for path, array in weights().items()}
    model = nest.load("whisper-tiny", backend=backend, weights=calm, **SMALL)
    rules = GenerationRules(
        start=1, end=12, prompt=(1, 2), no_timestamps=2, first_timestamp=VOCAB, positions=CAPACITY,
        alignment_heads=((1, 0),),
    )  # fmt: skip
    session = model.new_session()
    mel = MelSettings(bins=5, rate=16000, window_seconds=0.3)
    tokens = (4, 9, 6, 7, 11, 3, 5)
    states = session.listen(mel_of(1))
    tokenizer: Any = Letters()
    return window_words(
        session, states, rules.prompt, tokens, tokenizer, rules, mel, start=30.0, end=30.25, language="en"
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_gives_the_words_of_the_reference(backend: str) -> None:
    made, expected = small_words(backend), small_words("reference")
    assert [word.text for word in made] == [" ejg", " hld", " f"]
    for ours, theirs in zip(made, expected, strict=True):
        assert (ours.start, ours.end) == (theirs.start, theirs.end)
        assert ours.probability == pytest.approx(theirs.probability, rel=1e-3)
        assert 30 <= ours.start < ours.end <= 30.25
