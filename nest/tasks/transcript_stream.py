"""A transcript in the making: a segment after another."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError
from nest.tasks._recording_windows import RecordingWindows
from nest.tasks._sequential import SHORTEST_SECONDS, Sequential
from nest.tasks._sessions import Sessions
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks._voiced_windows import VoicedWindows
from nest.tasks._window_words import WindowWords
from nest.tasks.audio import AudioStream
from nest.tasks.decode import decode, language_probabilities
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules, prompt_ids
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcript import Segment, Transcript, joined
from nest.tasks.voice import detector

__all__ = ["Speech", "TranscriptStream"]


class Speech(Protocol):
    """What a transcriber knows of its model."""

    tokenizer: Tokenizer
    rules: GenerationRules
    mel: MelSettings


class TranscriptStream(Iterator[Segment]):
    """The segments of a recording, each as soon as it is decoded; what is not asked for is not decoded.

    Attributes:
        language: the code of the language that is heard, once the first segment has come.
        seconds: how long the recording is, as far as that is known beforehand.
    """

    def __init__(
        self, made: Speech, sessions: Sessions, audio: AudioStream, wishes: SpeechWishes, *, split: bool
    ) -> None:
        self.language = wishes.language
        self.seconds = audio.seconds
        self._made, self._sessions, self._audio, self._wishes = made, sessions, audio, wishes
        self._windows: RecordingWindows | None = None
        self._heard = 0
        self._ended = False
        self._done: list[Segment] = []
        self._segments = self._run(list(range(audio.channels)) if split else [None])

    def __next__(self) -> Segment:
        return next(self._segments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the rest."""
        self._segments.close()
        self._audio.close()

    @property
    def position(self) -> float:
        """How many seconds have been heard; of the channel that is heard now."""
        return 0.0 if self._windows is None else self._windows.at / self._made.mel.rate

    @property
    def result(self) -> Transcript:
        """The whole transcript; what has not been read is decoded first.

        Raises:
            ValueError: the stream was closed, or failed, before its end.
        """
        for _ in self:
            pass
        if not self._ended:
            raise ValueError("The stream was closed before the recording's end.")
        return joined(self._done, self.language or "en", self._heard / self._made.mel.rate)

    def _run(self, channels: list[int] | list[None]) -> Generator[Segment, None, None]:
        with self._audio, self._sessions.lend() as session:
            for channel in channels:
                self._windows = windows = self._windows_of(channel)
                self._refuse_short(windows.left())
                for segment in self._of_channel(session, windows):
                    moved = _moved(segment, self._audio.start, channel)
                    self._done.append(moved)
                    yield moved
                self._heard = max(self._heard, windows.at + windows.left())
        self._ended = True

    def _windows_of(self, channel: int | None) -> RecordingWindows:
        blocks, size = self._audio.read(channel), self._made.mel.samples
        if self._wishes.vad:
            return VoicedWindows(blocks, size, detector().start())
        return RecordingWindows(blocks, size)

    def _of_channel(self, session: Any, windows: RecordingWindows) -> Iterator[Segment]:
        made, wishes = self._made, self._wishes
        words = (
            WindowWords(made.tokenizer, made.rules, made.mel, wishes.task) if wishes.word_timestamps else None
        )
        slack = round(SHORTEST_SECONDS * made.mel.rate)
        longer = windows.left(beyond=slack + 1) > made.mel.samples + slack
        timed = longer if wishes.timestamps is None else wishes.timestamps
        if timed:
            language = self._detected(session, windows.window())
            how = Sequential(session, made.tokenizer, made.rules, made.mel, wishes, words)
            yield from how.segments(windows, language)
        else:
            yield from self._untimed(session, windows, words)

    def _untimed(
        self, session: Any, windows: RecordingWindows, words: WindowWords | None
    ) -> Iterator[Segment]:
        """A segment for each window, all of it."""
        made, rate = self._made, self._made.mel.rate
        while len(samples := windows.speech()) and (
            windows.at == 0 or len(samples) > SHORTEST_SECONDS * rate
        ):
            start, end = windows.at / rate, (windows.at + len(samples)) / rate
            states = session.listen(log_mel(samples, made.mel))
            language = self._detected(session)
            prompt = np.array([prompt_ids(made.rules, language, self._wishes.task)], np.int32)
            (row,) = decode(session, prompt, made.rules, max_tokens=self._wishes.max_tokens)
            tokens = tuple(token for token in row.tokens if token < made.rules.end)
            said = Segment(
                start,
                end,
                made.tokenizer.decode(tokens),
                tokens,
                mean_log_probability=row.mean_log_probability,
            )
            windows.advance(len(samples))
            yield from (
                [said] if words is None else words.given_to([said], session, states, start, end, language)
            )

    def _detected(self, session: Any, window: NDArray[np.float32] | None = None) -> str:
        """The language, heard in `window` or in what `session` has listened to."""
        made = self._made
        if self.language is None and not made.rules.multilingual:
            self.language = "en"
        if self.language is None:
            if window is not None:
                session.listen(log_mel(window, made.mel))
            self.language = next(iter(language_probabilities(session, made.rules)[0]))
        return self.language

    def _refuse_short(self, length: int) -> None:
        rate = self._made.mel.rate
        if length <= SHORTEST_SECONDS * rate:
            raise InputError(
                f"The recording is {length / rate:.3g} s long ({length} samples at {rate} a second), "
                f"too short for a word: a model would only make one up. Pass more than {SHORTEST_SECONDS} s."
            )


def _moved(segment: Segment, by: float, channel: int | None) -> Segment:
    """The segment of a part of a recording, at its times in the whole."""
    if not by and channel is None:
        return segment
    words = tuple(replace(word, start=word.start + by, end=word.end + by) for word in segment.words)
    return replace(segment, start=segment.start + by, end=segment.end + by, words=words, channel=channel)
