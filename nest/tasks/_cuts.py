"""A recording cut at its silences, into windows that are decoded without knowing of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nest.tasks._pauses import Pauses
from nest.tasks._recording_windows import SHORTEST_SECONDS, RecordingWindows

__all__ = ["Window", "cuts"]

EARLIEST = 2 / 3
"""Of a window; a cut before that would leave too much of it empty."""
LEAST_SECONDS = 5.0
"""What is left after the last cut of a recording: on a word or two a model makes something up."""
AROUND_SECONDS = 0.3
"""How far around a cut it is to be silent; so much silence on either side is as good as more."""
LATE = 0.05
"""How much more speech, of all that could be, there may be around a cut at a window's end than around the earliest."""


@dataclass(frozen=True)
class Window:
    """A part of a recording.

    Attributes:
        at: the index of its first sample.
        samples: float32 [n], of its own.
        spoken: where in it, in samples, each chunk begins in which somebody speaks; None where that is not known.
        chunk: how many samples such a chunk has.
        pauses: where nobody speaks, in seconds from the recording's beginning.
    """

    at: int
    samples: NDArray[np.float32]
    spoken: NDArray[np.int64] | None
    chunk: int
    pauses: Pauses = ()

    def __len__(self) -> int:
        return len(self.samples)

    def speech_after(self, first: int) -> int:
        """How many samples after the first ones belong to chunks in which somebody is known to speak."""
        return 0 if self.spoken is None else int((self.spoken >= first).sum()) * self.chunk

    def after(self, first: int) -> Window:
        """What comes after the first samples."""
        spoken = None if self.spoken is None else self.spoken[self.spoken >= first] - first
        return Window(self.at + first, self.samples[first:], spoken, self.chunk, self.pauses)


def cuts(windows: RecordingWindows, rate: int) -> Iterator[Window]:
    """The windows of a recording, each read when it is asked for; what lies between two of them is no speech.

    One ends where a pause begins (see `RecordingWindows.speech`), or at the quietest place of its last third: there is
    no more speech, or noise, around any other. Nothing lies in two of them.

    Args:
        windows: at the recording's beginning; `at` is how far it has been read.
        rate: samples a second.
    """
    while len(samples := windows.speech()) > SHORTEST_SECONDS * rate:
        count = _cut(windows, rate) if len(samples) == windows.size else len(samples)
        spoken = windows.spoken(count)
        pauses = windows.pauses(count, rate)
        window = Window(windows.at, samples[:count].copy(), spoken, windows.chunk, pauses)
        windows.advance(count)
        yield window


def _cut(windows: RecordingWindows, rate: int) -> int:
    """How many samples of a full window come before its end."""
    size, least = windows.size, round(LEAST_SECONDS * rate)
    least = min(least, size // 4)
    left = windows.left(beyond=least)
    if left <= size:
        return size
    begins, levels = windows.levels()
    places = begins + windows.chunk // 2
    possible = np.flatnonzero((places >= EARLIEST * size) & (places <= min(size, left - least)))
    around = _around(levels, max(round(AROUND_SECONDS * rate / windows.chunk), 1))[possible]
    early = np.linspace(LATE, 0, len(possible))
    # Of equal places the latest.
    best = len(possible) - 1 - int((around + early)[::-1].argmin())
    return int(places[possible[best]])


def _around(levels: NDArray[np.float32], reach: int) -> NDArray[np.float64]:
    """The mean of the levels around each, the nearer ones counting more: none beyond `reach`."""
    weights = np.bartlett(2 * reach + 3)[1:-1]
    padded = np.pad(levels.astype(np.float64), reach, "edge")
    return np.convolve(padded, weights / weights.sum(), "valid")
