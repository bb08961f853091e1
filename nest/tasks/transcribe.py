"""Speech to text: a recording in, what it says out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError
from nest.tasks import audio as audio_files
from nest.tasks._sessions import Sessions, session_options
from nest.tasks.audio import AudioSource
from nest.tasks.decode import SpeechSession, greedy, language_probabilities
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules, prompt_ids, token_budget
from nest.tasks.tokens import Tokenizer
from nest.tasks.words import Word, refuse_unaligned, window_words

__all__ = ["Segment", "SpeechModel", "Transcriber", "Transcript", "Word"]

SHORTEST_SECONDS = 0.1
"""A recording, or what is left of one after its last window, that is no longer than this holds no word."""


class SpeechModel(Protocol):
    """A loaded model whose sessions transcribe."""

    def new_session(self, *, Batch: int, **options: Any) -> SpeechSession:
        """Return a session of `Batch` rows over the model's weights."""


@dataclass(frozen=True)
class Segment:
    """A stretch of a recording, from `start` to `end` in seconds, and what it says; its words, where asked for."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """What a recording says.

    Attributes:
        text: all of it, without spaces around.
        tokens: its text tokens.
        language: the code of the language that it was decoded in.
        duration: the recording's length in seconds.
        segments: the stretches that it was decoded in; their texts joined are `text`, spaces around aside.
    """

    text: str
    tokens: tuple[int, ...]
    language: str
    duration: float
    segments: tuple[Segment, ...]


class Transcriber:
    """A speech-to-text pipeline over one model's weights; threads may share it.

    A recording longer than the model's window is cut at every 30 seconds and its parts are decoded one after
    another, each without regard to the others: a word on a cut may be lost or doubled.
    """

    def __init__(
        self,
        model: SpeechModel,
        tokenizer: Tokenizer,
        rules: GenerationRules,
        mel: MelSettings,
        *,
        plan: str = "exact",
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.rules = rules
        self.mel = mel
        self.plan = plan
        self._sessions = Sessions(model, Batch=1, **session_options(model, plan))

    def __call__(
        self,
        audio: AudioSource,
        *,
        rate: int | None = None,
        language: str | None = None,
        task: str = "transcribe",
        max_tokens: int | None = None,
        word_timestamps: bool = False,
    ) -> Transcript:
        """Return what `audio` says.

        Args:
            audio: a path, bytes, a binary file object, or an array of samples; see `nest.tasks.audio.load`.
            rate: samples a second of an array, 16000 if left out.
            language: a code such as `"en"`. A multilingual model detects it in the first window if left out.
            task: `"transcribe"`, or `"translate"` into English.
            max_tokens: at most so many tokens for each window, half of the decoder's positions if left out.
            word_timestamps: whether segments have words with times; the model hears each window's text once more.

        Raises:
            InputError: audio that cannot be read or is no longer than 0.1 s, or a language, a task or times of words
                that the model does not have.
        """
        self._refuse_early(language, task, max_tokens)
        if word_timestamps:
            refuse_unaligned(self.rules)
        samples = audio_files.load(audio, rate, target=self.mel.rate)
        self._refuse_short(len(samples))
        segments = []
        with self._sessions.lend() as session:
            for start, window in _windows(samples, self.mel):
                states = session.listen(log_mel(window, self.mel))
                language = language or self._language(session)
                tokens = self._decode(session, language, task, max_tokens)
                segment = self._segment(start, window, tokens)
                if word_timestamps:
                    words = self._words(session, states, segment, language, task)
                    segment = replace(segment, words=words)
                segments.append(segment)
        text = "".join(segment.text for segment in segments).strip()
        tokens = tuple(token for segment in segments for token in segment.tokens)
        return Transcript(text, tokens, language or "en", len(samples) / self.mel.rate, tuple(segments))

    def _refuse_short(self, length: int) -> None:
        if length <= SHORTEST_SECONDS * self.mel.rate:
            raise InputError(
                f"The recording is {length / self.mel.rate:.3g} s long ({length} samples at {self.mel.rate} a second), "
                f"too short for a word: a model would only make one up. Pass more than {SHORTEST_SECONDS} s."
            )

    def _refuse_early(self, language: str | None, task: str, max_tokens: int | None) -> None:
        """Raise what a later call would, before the work begins."""
        prompt = prompt_ids(self.rules, language or next(iter(self.rules.languages), None), task)
        token_budget(self.rules, len(prompt), max_tokens)

    def _language(self, session: SpeechSession) -> str:
        if not self.rules.multilingual:
            return "en"
        return next(iter(language_probabilities(session, self.rules)[0]))

    def _decode(
        self, session: SpeechSession, language: str, task: str, max_tokens: int | None
    ) -> tuple[int, ...]:
        prompt = np.array([prompt_ids(self.rules, language, task)], dtype=np.int32)
        (tokens,) = greedy(session, prompt, self.rules, max_tokens=max_tokens)
        return tuple(token for token in tokens if token < self.rules.end)

    def _segment(self, start: int, window: NDArray[np.float32], tokens: tuple[int, ...]) -> Segment:
        end = (start + len(window)) / self.mel.rate
        return Segment(start / self.mel.rate, end, self.tokenizer.decode(tokens), tokens)

    def _words(
        self, session: Any, states: Any, segment: Segment, language: str, task: str
    ) -> tuple[Word, ...]:
        """When each word of a segment was said, of a session that has just listened to it."""
        return window_words(
            session,
            states,
            prompt_ids(self.rules, language, task),
            segment.tokens,
            self.tokenizer,
            self.rules,
            self.mel,
            start=segment.start,
            end=segment.end,
            language="en" if task == "translate" else language,
        )

    def __repr__(self) -> str:
        name = getattr(getattr(self.model, "program", None), "name", type(self.model).__name__)
        return (
            f"<{type(self).__name__} of {name} on {getattr(self.model, 'backend', 'a backend of its own')}>"
        )


def _windows(samples: NDArray[np.float32], mel: MelSettings) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the first sample's index and the samples of each window; the last one may be shorter."""
    for start in range(0, len(samples), mel.samples):
        window = samples[start : start + mel.samples]
        if start == 0 or len(window) > SHORTEST_SECONDS * mel.rate:
            yield start, window
