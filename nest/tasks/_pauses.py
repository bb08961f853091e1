"""Times that lie in a pause: attention and the model's own times reach into silence, where nothing is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nest.tasks._alignment import spans
from nest.tasks.transcript import Segment

__all__ = ["PAUSE_SECONDS", "Pauses", "runs", "within_speech"]

PAUSE_SECONDS = 0.5
"""A shorter silence is left to the model: stops of consonants and breaths are such."""

Pauses = Sequence[tuple[float, float]]
"""Where nobody speaks: beginnings and ends in seconds from the recording's beginning, in order."""


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The runs of true `flags` [n]: the index of the first of each, and the one behind its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def within_speech(segment: Segment, pauses: Pauses) -> Segment:
    """The segment and its words without the pauses that they begin or end in; with words, it lasts as long as they do.

    Where a word lies in a pause as a whole, attention has lost it: the words are then put into the segment's own time,
    if that is outside.
    """
    start, end = _within(segment.start, segment.end, pauses)
    if not segment.words:
        return replace(segment, start=start, end=end)
    times = np.array([_within(word.start, word.end, pauses) for word in segment.words])
    if any(_lost(first, last, pauses) for first, last in times) and not _lost(start, end, pauses):
        times = spans(np.clip(times - start, 0, end - start), end - start) + start
    words = tuple(
        replace(word, start=float(first), end=float(last))
        for word, (first, last) in zip(segment.words, times, strict=True)
    )
    return replace(segment, start=words[0].start, end=words[-1].end, words=words)


def _within(start: float, end: float, pauses: Pauses) -> tuple[float, float]:
    first = next((last for begins, last in pauses if begins <= start < last), start)
    last = next((begins for begins, last in pauses if begins < end <= last), end)
    return (first, last) if first < last else (start, end)


def _lost(start: float, end: float, pauses: Pauses) -> bool:
    return any(begins <= start and end <= last for begins, last in pauses)
