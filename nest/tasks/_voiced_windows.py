"""Windows over the parts of a recording where somebody speaks."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from nest.tasks._pauses import PAUSE_SECONDS as NOTICED_SECONDS
from nest.tasks._pauses import Pauses, runs
from nest.tasks._recording_windows import RecordingWindows
from nest.tasks.voice import CHUNK, RATE, Voice

__all__ = ["VoicedWindows"]

LIKELY = 0.3
"""Over this, somebody may speak: a word that is missed is worse than a breath."""
SURE = 0.6
"""Nobody speaks between two pauses where nothing is over this. Chords reach 0.53 as they change; speech in noise that
is as loud reaches 0.98."""
PAUSE_SECONDS = 2.0
"""A shorter silence is a part of what is said, and left to the model."""
SPEECH_SECONDS = 0.5
"""So much speech after the last text of a window is not passed over."""
MARGIN_SECONDS = 0.3
"""What is heard before and after speech."""
LATE_SECONDS = 0.1
"""By so much the detector may hear speech begin too late, and end too early."""


class VoicedWindows(RecordingWindows):
    """A window that begins shortly before speech, and ends where a pause begins; there is none without speech.

    Blocks have 16000 samples a second.
    """

    def __init__(self, blocks: Iterator[NDArray[np.float32]], size: int, voice: Voice) -> None:
        super().__init__(self._listened(blocks), size)
        self._voice = voice
        self.chunk = CHUNK
        self._likely = np.zeros(0, np.float32)  # of each chunk of the recording: eight kilobytes a minute

    def _listened(self, blocks: Iterator[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
        for block in blocks:
            self._add(self._voice.hear(block))
            yield block
        self._add(self._voice.finish())

    def _add(self, probabilities: NDArray[np.float32]) -> None:
        self._likely = np.concatenate([self._likely, probabilities])

    def speech(self) -> NDArray[np.float32]:
        """Move to where speech comes next, and give the window from there to the next pause; none at the end."""
        margin, pause = round(MARGIN_SECONDS * RATE), round(PAUSE_SECONDS * RATE)
        while len(window := self.window()):
            stretch = self._stretch(len(window))
            if stretch is None:
                self.advance(len(window))
                continue
            begins, end, sure = stretch
            if begins > (pause if sure else margin):
                self.advance(begins - margin)
            elif not sure:  # for as long as a window
                self.advance(len(window))
            else:
                return window[: end + margin] if len(window) - end > pause else window
        return window

    def _stretch(self, length: int) -> tuple[int, int, bool] | None:
        """The first speech in so many samples of the window: where it begins, where the next pause does, and whether it
        is sure that it is some; of the last, which may go on after the window, that need not be known yet."""
        pause = round(PAUSE_SECONDS * RATE)
        stretches: list[list[int]] = []
        for chunk in self._chunks(length):
            if stretches and (chunk - stretches[-1][-1]) * CHUNK <= pause:
                stretches[-1].append(chunk)
            else:
                stretches.append([chunk])
        for chunks in stretches:
            end = (chunks[-1] + 1) * CHUNK - self.at
            sure = bool(self._likely[chunks].max() > SURE)
            if sure or (length - end <= pause and self.left(beyond=1) > length):
                return max(chunks[0] * CHUNK - self.at, 0), end, sure
        return None

    def speaks(self, first: int, last: int) -> bool:
        """Whether there is half a second of speech between these samples of the window."""
        heard = [chunk for chunk in self._chunks(last) if chunk * CHUNK >= self.at + first]
        return len(heard) * CHUNK > SPEECH_SECONDS * RATE and bool(self._likely[heard].max() > SURE)

    def pauses(self, length: int, rate: int) -> Pauses:
        """Where the detector hears nobody, in what has been read so far."""
        found = []
        for first, last in runs(self._likely <= LIKELY):
            begins, ends = first * CHUNK / RATE, last * CHUNK / RATE
            if ends - begins >= NOTICED_SECONDS and last * CHUNK > self.at:
                begins += LATE_SECONDS if first else 0
                found.append((begins, ends - LATE_SECONDS if last < len(self._likely) else inf))
        return found

    def spoken(self, length: int) -> NDArray[np.int64]:
        return np.array(self._chunks(length), np.int64) * CHUNK - self.at

    def levels(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Where each chunk begins, and how likely it is that somebody speaks in it."""
        first, likely = self._within(len(self.window()))
        return (first + np.arange(len(likely))) * CHUNK - self.at, likely

    def _chunks(self, length: int) -> list[int]:
        """The chunks of the window in which somebody may speak."""
        first, likely = self._within(length)
        return [first + int(chunk) for chunk in np.flatnonzero(likely > LIKELY)]

    def _within(self, length: int) -> tuple[int, NDArray[np.float32]]:
        """The first chunk of so many samples of the window, and the probabilities of all that they touch."""
        first = self.at // CHUNK
        return first, self._likely[first : -(-(self.at + length) // CHUNK)]
