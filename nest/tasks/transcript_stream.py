"""A transcript in the making: a segment after another."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError
from nest.tasks._attempts import hears_nobody, padded_prompt
from nest.tasks._batched import Batched
from nest.tasks._branches import Branches
from nest.tasks._nothing_said import says_something
from nest.tasks._pauses import within_speech
from nest.tasks._recording_windows import SHORTEST_SECONDS, RecordingWindows
from nest.tasks._sequential import Sequential
from nest.tasks._sessions import Sessions
from nest.tasks._sized_sessions import SizedSessions
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks._spoken_language import SpokenLanguage
from nest.tasks._temperatures import texts_at
from nest.tasks._voiced_windows import VoicedWindows
from nest.tasks._window_words import WindowWords
from nest.tasks.audio import AudioStream
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules, after_previous, prompt_ids
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcript import Segment, Transcript, joined
from nest.tasks.voice import detector

__all__ = ["Speech", "TranscriptStream", "refuse_short", "windows_over"]


class Speech(Protocol):
    """What a transcriber knows of its model; `sessions` are of one row, `batches` of several, and `branches` go on from
    what another has heard."""

    sessions: Sessions
    batches: SizedSessions
    branches: Branches
    tokenizer: Tokenizer
    rules: GenerationRules
    mel: MelSettings


class TranscriptStream(Iterator[Segment]):
    """The segments of a recording, each as soon as it is decoded; what is not asked for is not decoded.

    Attributes:
        seconds: how long the recording is, as far as that is known beforehand.
    """

    def __init__(self, made: Speech, audio: AudioStream, wishes: SpeechWishes, *, split: bool) -> None:
        self.seconds = audio.seconds
        self._made, self._audio, self._wishes = made, audio, wishes
        self._windows: RecordingWindows | None = None
        self._heard = 0
        self._ended = False
        self._done: list[Segment] = []
        self._spoken = [SpokenLanguage(made.rules, wishes.language)]
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
    def language(self) -> str | None:
        """The code of the language that is heard, once the first segment has come; of the channel that is heard now."""
        return self._spoken[-1].code

    @property
    def language_probabilities(self) -> Mapping[str, float] | None:
        """How likely each language is, likeliest first, where it was detected; of the channel that is heard now."""
        return self._spoken[-1].probabilities

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
        heard = next((spoken for spoken in self._spoken if spoken.code is not None), self._spoken[0])
        return joined(self._done, self._heard / self._made.mel.rate, heard.code, heard.probabilities)

    def _run(self, channels: list[int] | list[None]) -> Generator[Segment, None, None]:
        with self._audio:
            for channel in channels:
                blocks, vad = self._audio.read(channel), self._wishes.vad
                self._windows = windows = windows_over(blocks, self._made.mel, vad=vad)
                refuse_short(windows.left(), self._made.mel.rate)
                if channel:
                    self._spoken.append(SpokenLanguage(self._made.rules, self._wishes.language))
                for segment in self._of_channel(windows):
                    moved = _moved(segment, self._audio.start, channel, self.language)
                    self._done.append(moved)
                    yield moved
                self._heard = max(self._heard, windows.at + windows.left())
        self._ended = True

    def _of_channel(self, windows: RecordingWindows) -> Iterator[Segment]:
        made, wishes = self._made, self._wishes
        words = (
            WindowWords(made.tokenizer, made.rules, made.mel, wishes.task) if wishes.word_timestamps else None
        )
        slack = round(SHORTEST_SECONDS * made.mel.rate)
        longer = windows.left(beyond=slack + 1) > made.mel.samples + slack
        timed = longer if wishes.timestamps is None else wishes.timestamps
        if timed and wishes.rows > 1:
            batched = Batched(
                made.batches, made.branches, made.tokenizer, made.rules, made.mel, wishes, words
            )
            yield from batched.segments(windows, self._spoken[-1])
            return
        with made.sessions.lend() as session:
            if timed:
                how = Sequential(session, made.branches, made.tokenizer, made.rules, made.mel, wishes, words)
                yield from how.segments(windows, self._spoken[-1])
            else:
                yield from self._untimed(session, windows, words)

    def _untimed(
        self, session: Any, windows: RecordingWindows, words: WindowWords | None
    ) -> Iterator[Segment]:
        """A segment for each window, all of it, in which somebody is heard to speak."""
        made, rate = self._made, self._made.mel.rate
        previous = self._wishes.told_before(made.tokenizer)
        while len(samples := windows.speech()) and (
            windows.at == 0 or len(samples) > SHORTEST_SECONDS * rate
        ):
            start, end = windows.at / rate, (windows.at + len(samples)) / rate
            states = session.listen(log_mel(samples, made.mel))
            language = self._spoken[-1].heard_in(session)
            said = self._whole(session, start, end, language, previous)
            previous = []
            pauses = windows.pauses(len(samples), rate)
            windows.advance(len(samples))
            if said is not None and words is not None:
                (worded,) = words.given_to([said], session, states, start, end, language)
                said = replace(said, words=within_speech(worded, pauses).words)
            if said is not None:
                yield said

    def _whole(
        self, session: Any, start: float, end: float, language: str, previous: list[int]
    ) -> Segment | None:
        """What the window that `session` has listened to says, without times; None where nobody is heard to speak."""
        made, wishes = self._made, self._wishes
        ids = after_previous(made.rules, prompt_ids(made.rules, language, wishes.task), previous)
        prompt, lengths = padded_prompt(ids, made.rules)
        temperature, seed = wishes.temperatures[0], wishes.seed + round(start * made.mel.rate)
        (row,) = texts_at(
            temperature, session, made.branches, prompt, made.rules, wishes, seeds=[seed], lengths=lengths
        )
        tokens = tuple(token for token in row.tokens if token < made.rules.end)
        text = made.tokenizer.decode(tokens)
        likely = row.mean_log_probability
        if not says_something(text) or hears_nobody(session, ids, made.rules, wishes, likely):
            return None
        return Segment(start, end, text, tokens, mean_log_probability=likely, temperature=temperature)


def windows_over(blocks: Iterator[NDArray[np.float32]], mel: MelSettings, *, vad: bool) -> RecordingWindows:
    """The windows of a recording; with `vad`, over where somebody speaks."""
    if vad:
        return VoicedWindows(blocks, mel.samples, detector().start())
    return RecordingWindows(blocks, mel.samples)


def refuse_short(length: int, rate: int) -> None:
    """Raise where a recording of `length` samples holds no word.

    Raises:
        InputError: it is no longer than 0.1 s.
    """
    if length <= SHORTEST_SECONDS * rate:
        raise InputError(
            f"The recording is {length / rate:.3g} s long ({length} samples at {rate} a second), "
            f"too short for a word: a model would only make one up. Pass more than {SHORTEST_SECONDS} s."
        )


def _moved(segment: Segment, by: float, channel: int | None, language: str | None) -> Segment:
    """The segment of a part of a recording, at its times in the whole; `language` is that of the channel."""
    if not by and channel is None:
        return segment
    words = tuple(replace(word, start=word.start + by, end=word.end + by) for word in segment.words)
    moved = replace(segment, start=segment.start + by, end=segment.end + by, words=words)
    return moved if channel is None else replace(moved, channel=channel, language=language)
