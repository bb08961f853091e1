"""Whatever a model says, times are in order, inside the recording, and last: tokens and attention drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber, Transcript
from nest.tasks.voice import CHUNK

from .scripted import END, FIRST_TIME, NO_TIMES, START, ScriptedModel, ScriptedSession, tokens_of

MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)
RULES = GenerationRules(
    start=START, end=END, prompt=(START, NO_TIMES), no_timestamps=NO_TIMES, first_timestamp=FIRST_TIME, positions=80,
    max_tokens=12, start_of_previous=254, no_speech=255, alignment_heads=((0, 0),),
)  # fmt: skip
LETTERS = tokens_of("ab .é好")
TOKENS = st.one_of(st.sampled_from(LETTERS), st.integers(FIRST_TIME, FIRST_TIME + 100), st.just(END))


class Babbler(ScriptedSession):
    """A session that says the given windows again and again, and attends to anything."""

    def __init__(self, windows: list[list[int]], seed: int) -> None:
        super().__init__(vocabulary=FIRST_TIME + 101)
        self.windows, self.drawn = windows, np.random.default_rng(seed)

    def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        self.scripts = [[tuple(self.windows[len(self.prompts) % len(self.windows)])]]
        count = tokens.shape[1] if lengths is None else int(lengths[0])
        return super().prefill(tokens[:, :count])

    def align(self, tokens: np.ndarray) -> np.ndarray:
        weights = self.drawn.uniform(size=(1, 1, tokens.shape[1], 100)).astype(np.float32) ** 8
        return weights / weights.sum(-1, keepdims=True)

    def decode(self, tokens: np.ndarray, audio: Any) -> np.ndarray:
        return self.drawn.standard_normal((*tokens.shape, self.vocabulary)).astype(np.float32)


class Doubt:
    """A detector that hears speech here and there."""

    def __init__(self, seed: int) -> None:
        self.drawn = np.random.default_rng(seed)

    def start(self) -> Doubt:
        return self

    def hear(self, samples: np.ndarray) -> np.ndarray:
        drawn = self.drawn.choice([0, 0.4, 1], size=1 + len(samples) // CHUNK, p=[0.9, 0.05, 0.05])
        return np.repeat(drawn, 16)[: len(samples) // CHUNK].astype(np.float32)

    def finish(self) -> np.ndarray:
        return np.zeros(1, np.float32)


def refuse_disorder(made: Transcript, start: float = 0.0) -> None:
    """Fail where a segment or a word has no time, begins before the one before it ends, or lies outside."""
    last = start
    for segment in made.segments:
        assert last <= segment.start < segment.end <= start + made.duration + 1e-9
        last = segment.end
        assert segment.text.strip()
        if segment.words:
            assert "".join(word.text for word in segment.words) == segment.text
            at = segment.start
            for word in segment.words:
                assert at <= word.start < word.end <= segment.end
                at = word.end
    assert made.text == "".join(segment.text for segment in made.segments).strip()


@given(
    st.lists(st.lists(TOKENS, max_size=10), min_size=1, max_size=4),
    st.integers(101, 7000),
    st.lists(st.integers(0, 7000), max_size=4),
    st.sampled_from([None, True, False]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=300)
def test_times_are_in_order_whatever_is_said(
    tokenizer: Tokenizer,
    windows: list[list[int]],
    length: int,
    cuts: list[int],
    timestamps: bool | None,
    words: bool,
    seed: int,
) -> None:
    audio = np.random.default_rng(seed).uniform(-1, 1, length).astype(np.float32)
    for first, last in zip(cuts[::2], cuts[1::2], strict=False):
        audio[first:last] = 0
    made = Transcriber(ScriptedModel(Babbler(windows, seed)), tokenizer, RULES, MEL)
    options = {"timestamps": timestamps, "word_timestamps": words, "temperature": 0}
    refuse_disorder(made(audio, **options))
    if length > 1200:
        refuse_disorder(made(audio, start=1.0, **options), start=1.0)


@given(
    st.lists(st.lists(TOKENS, max_size=10), min_size=1, max_size=4),
    st.integers(2000, 200_000),
    st.integers(0, 99),
)
@settings(max_examples=60)
def test_times_are_in_order_where_the_detector_decides(
    tokenizer: Tokenizer, windows: list[list[int]], length: int, seed: int
) -> None:
    mel = MelSettings(bins=4, window_seconds=2.0)
    audio = np.random.default_rng(seed).uniform(-1, 1, length).astype(np.float32)
    made = Transcriber(ScriptedModel(Babbler(windows, seed)), tokenizer, RULES, mel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nest.tasks.transcript_stream.detector", lambda: Doubt(seed))
        refuse_disorder(made(audio, vad=True, timestamps=True, word_timestamps=True, temperature=0))
