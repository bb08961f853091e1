"""The windows of a recording that comes in blocks: a few are held, however long it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nest.tasks._pauses import PAUSE_SECONDS, Pauses, runs

__all__ = ["SHORTEST_SECONDS", "RecordingWindows"]

SHORTEST_SECONDS = 0.1
"""A recording, or what is left of one after its last window, that is no longer than this holds no word."""


class RecordingWindows:
    """A window of `size` samples over a recording, which moves forward.

    Attributes:
        at: the index of the window's first sample.
        chunk: of how many samples `levels` and `spoken` say something: about a thousandth of the window.
    """

    def __init__(self, blocks: Iterator[NDArray[np.float32]], size: int) -> None:
        self.at = 0
        self.size = size
        self.chunk = max(size // 1000, 1)
        self._blocks = blocks
        self._held = np.zeros(0, np.float32)
        self._ended = False

    def window(self) -> NDArray[np.float32]:
        """The samples that it is over; fewer at the recording's end, and none after it."""
        self._hold(self.size)
        return self._held[: self.size]

    def speech(self) -> NDArray[np.float32]:
        """The next window that is to be decoded: digital silence is passed over. None at the recording's end."""
        while len(window := self.window()) and not window.any():
            self.advance(len(window))
        return window

    def speaks(self, first: int, last: int) -> bool:
        """Whether somebody is known to speak between these samples of the window: here nothing is known."""
        return False

    def spoken(self, length: int) -> NDArray[np.int64] | None:
        """Where, among so many samples of the window, each chunk begins in which somebody speaks: not known here."""
        return None

    def levels(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Where each chunk of the window begins, and how much speech is in it: here, how loud it is of the mean."""
        window = self.window()
        count = len(window) // self.chunk
        chunks = window[: count * self.chunk].reshape(count, self.chunk)
        loudness = np.sqrt(np.square(chunks).mean(axis=1))
        return np.arange(count) * self.chunk, loudness / max(float(loudness.mean()), 1e-12)

    def pauses(self, length: int, rate: int) -> Pauses:
        """Where nobody speaks in the first `length` samples, of `rate` a second: here only digital silence is known."""
        found = []
        for first, last in runs(self._held[:length] == 0):
            # One that the window begins in may have begun before it.
            if last - first >= PAUSE_SECONDS * rate or (first == 0 < self.at):
                found.append(((self.at + first) / rate, (self.at + last) / rate))
        return found

    def left(self, beyond: int = 0) -> int:
        """How many samples there are from the window's beginning on, counted up to `beyond` after its end."""
        self._hold(self.size + beyond)
        return min(len(self._held), self.size + beyond)

    def advance(self, count: int) -> None:
        """Move on by `count` samples, at most to the recording's end."""
        self._hold(count)
        count = min(count, len(self._held))
        self._held = self._held[count:]
        self.at += count

    def _hold(self, count: int) -> None:
        parts = [self._held]
        held = len(self._held)
        while held < count and not self._ended:
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
            else:
                parts.append(block)
                held += len(block)
        if len(parts) > 1:
            self._held = np.concatenate(parts)
