"""Long recordings, several windows at a time: cut at silences, each decoded without what was said before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest.tasks._attempts import Attempt
from nest.tasks._branches import Branches
from nest.tasks._cuts import Window, cuts
from nest.tasks._pauses import within_speech
from nest.tasks._recording_windows import SHORTEST_SECONDS, RecordingWindows
from nest.tasks._row_attempts import RowAttempts, filled, rows_for
from nest.tasks._row_words import words_of_rows
from nest.tasks._sequential import REMAINDER_SECONDS, SLACK_SECONDS, heard_in, segments_of, within
from nest.tasks._sized_sessions import SizedSessions
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks._spoken_language import SpokenLanguage
from nest.tasks._voiced_windows import SPEECH_SECONDS
from nest.tasks._window_words import WindowWords
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules, timed_prompt_ids
from nest.tasks.timestamps import Heard, heard, whole_characters
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcript import Segment

__all__ = ["Batched"]


@dataclass(frozen=True)
class _Said:
    """A window that was decoded: its segments, and what of it they leave to be decoded, if anything."""

    segments: list[Segment]
    left: Window | None


class Batched:
    """Decodes the windows of one recording, up to `size` at a time.

    A window's text depends on the window alone: not on `size`, nor on what else is decoded with it.
    """

    def __init__(
        self,
        sessions: SizedSessions,
        branches: Branches,
        tokenizer: Tokenizer,
        rules: GenerationRules,
        mel: MelSettings,
        wishes: SpeechWishes,
        words: WindowWords | None,
    ) -> None:
        self.sessions, self.branches = sessions, branches
        self.tokenizer, self.rules, self.mel = tokenizer, rules, mel
        self.wishes, self.words, self.size = wishes, words, wishes.rows

    def segments(self, windows: RecordingWindows, spoken: SpokenLanguage) -> Iterator[Segment]:
        """The segments of the recording, in order; `windows.at` is how far it was read.

        No more than `size` windows are held. What one leaves after its text is decoded with the next ones, and what
        comes after it in the recording waits for it.
        """
        source = cuts(windows, self.mel.rate)
        line: list[Window | list[Segment]] = []
        while True:
            while line and isinstance(done := line[0], list):
                line.pop(0)
                yield from done
            while sum(isinstance(place, Window) for place in line) < self.size:
                if (window := next(source, None)) is None:
                    break
                line.append(window)
            if not line:
                return
            waiting = [place for place in line if isinstance(place, Window)]
            said = iter(self._decoded(waiting, spoken))
            line = [
                part
                for place in line
                for part in (_parts(next(said)) if isinstance(place, Window) else [place])
            ]

    def _decoded(self, windows: Sequence[Window], spoken: SpokenLanguage) -> list[_Said]:
        size = rows_for(len(windows), self.size)
        mels = [log_mel(window.samples, self.mel) for window in windows]
        with self.sessions.lend(size, self.rules.positions) as session:
            states = session.listen(np.concatenate([mels[row] for row in filled(range(len(windows)), size)]))
            language = spoken.heard_in(session, size)
            attempts = self._attempts(language).best(
                session, size, [self._seed(window) for window in windows]
            )
            found = [self._said(*pair) for pair in zip(windows, attempts, strict=True)]
            given = [said.segments for said in found]
            if self.words is not None:
                rate = self.mel.rate
                # What a window leaves has words of its own, which come after these.
                ends = [
                    w.at + len(w) if s.left is None else s.left.at
                    for w, s in zip(windows, found, strict=True)
                ]
                spans = [(window.at / rate, end / rate) for window, end in zip(windows, ends, strict=True)]
                given = words_of_rows(self.words, given, session, states, size, spans, language)
            return [
                replace(said, segments=[within_speech(segment, window.pauses) for segment in own])
                for said, own, window in zip(found, given, windows, strict=True)
            ]

    def _attempts(self, language: str) -> RowAttempts:
        told = self.wishes.told_before(self.tokenizer)
        prompt = timed_prompt_ids(self.rules, language, self.wishes.task, told)
        return RowAttempts(prompt, self.rules, self.tokenizer, self.wishes, self.branches)

    def _seed(self, window: Window) -> int:
        return self.wishes.seed + window.at

    def _said(self, window: Window, attempt: Attempt) -> _Said:
        found = heard_in(attempt, self.tokenizer, self.rules)
        stretches, rate = found.stretches, self.mel.rate
        done = self._done(found, window)
        if done is None and found.open:
            # Its text was heard to the window's end, so it is told where the window is.
            stretches += heard(attempt.tokens[len(found.tokens) :], self.rules).stretches
        placed = within(whole_characters(stretches, self.tokenizer), len(window) / rate)
        segments = segments_of(placed, window.at / rate, attempt, self.tokenizer)
        return _Said(segments, None if done is None else window.after(done))

    def _done(self, found: Heard, window: Window) -> int | None:
        """How many samples of the window are done with; None for all of it."""
        rate = self.mel.rate
        end = found.seconds
        if end is None and found.stretches:
            end = found.stretches[-1].end
        if end is None:
            return None
        count = round(end * rate)
        rest = len(window) - count
        if count <= 0 or rest <= SHORTEST_SECONDS * rate:
            return None
        if window.speech_after(round((end + SLACK_SECONDS) * rate)) > SPEECH_SECONDS * rate:
            return count
        # Nobody is known to speak there: what counts is whether the model heard a text, or may have.
        if found.seconds is None or rest < REMAINDER_SECONDS * rate:
            return None
        return count if found.open or window.spoken is None else None


def _parts(said: _Said) -> list[Window | list[Segment]]:
    return [said.segments] if said.left is None else [said.segments, said.left]
