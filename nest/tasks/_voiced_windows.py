"""Windows over the parts of a recording where somebody speaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nest.tasks._recording_windows import RecordingWindows
from nest.tasks.voice import CHUNK, RATE, Voice

__all__ = ["VoicedWindows"]

LIKELY = 0.3
"""Over this, somebody may speak: noise and chords stay under 0.2, and a word that is missed is worse than a breath."""
PAUSE_SECONDS = 2.0
"""A shorter silence is a part of what is said, and left to the model."""
SPEECH_SECONDS = 0.5
"""So much speech after the last text of a window is not passed over."""
MARGIN_SECONDS = 0.3
"""What is heard before and after speech."""


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
            spoken = self._chunks(len(window))
            if not spoken:
                self.advance(len(window))
                continue
            begins = max(spoken[0] * CHUNK - self.at, 0)
            if begins > pause:
                self.advance(begins - margin)
                continue
            gaps = (a for a, b in pairwise(spoken) if (b - a) * CHUNK > pause)
            end = (next(gaps, spoken[-1]) + 1) * CHUNK - self.at
            return window[: end + margin] if len(window) - end > pause else window
        return window

    def speaks(self, first: int, last: int) -> bool:
        """Whether there is half a second of speech between these samples of the window."""
        heard = [chunk for chunk in self._chunks(last) if chunk * CHUNK >= self.at + first]
        return len(heard) * CHUNK > SPEECH_SECONDS * RATE

    def spoken(self, length: int) -> NDArray[np.int64]:
        return np.array(self._chunks(length), np.int64) * CHUNK - self.at

    def levels(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Where each chunk begins, and how likely it is that somebody speaks in it."""
        first, likely = self._within(len(self.window()))
        return (first + np.arange(len(likely))) * CHUNK - self.at, likely

    def _chunks(self, length: int) -> list[int]:
        """The chunks of the window in which somebody speaks."""
        first, likely = self._within(length)
        return [first + int(chunk) for chunk in np.flatnonzero(likely > LIKELY)]

    def _within(self, length: int) -> tuple[int, NDArray[np.float32]]:
        """The first chunk of so many samples of the window, and the probabilities of all that they touch."""
        first = self.at // CHUNK
        return first, self._likely[first : -(-(self.at + length) // CHUNK)]
