"""Times that lie in a pause."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.tasks import Segment, Word
from nest.tasks._pauses import runs, within_speech
from nest.tasks._recording_windows import RecordingWindows

PAUSES = [(0.0, 1.0), (3.0, 5.0), (8.0, inf)]


def times(start: float, end: float, *words: tuple[float, float]) -> list[tuple[float, float]]:
    made = Segment(start, end, " a" * len(words), (), tuple(Word(" a", *span, 0.5) for span in words))
    found = within_speech(made, PAUSES)
    return [(found.start, found.end), *((word.start, word.end) for word in found.words)]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ((1.5, 2.5), (1.5, 2.5)),
        ((0.2, 2.5), (1.0, 2.5)),
        ((1.5, 4.0), (1.5, 3.0)),
        ((0.0, 4.9), (1.0, 3.0)),
        ((2.0, 6.0), (2.0, 6.0)),
        ((3.0, 9.0), (5.0, 8.0)),
        ((3.5, 4.5), (3.5, 4.5)),  # as a whole
        ((8.5, 9.0), (8.5, 9.0)),
        ((5.0, 8.0), (5.0, 8.0)),
    ],
)
def test_a_time_in_a_pause(span: tuple[float, float], expected: tuple[float, float]) -> None:
    assert times(*span) == [expected]


def test_a_segment_lasts_as_long_as_its_words() -> None:
    assert times(0.0, 9.0, (0.5, 2.0), (2.0, 6.0), (6.0, 8.5)) == [
        (1.0, 8.0),
        (1.0, 2.0),
        (2.0, 6.0),
        (6.0, 8.0),
    ]


def test_words_that_are_lost_in_a_pause_are_put_into_their_segment() -> None:
    assert times(5.0, 7.0, (4.0, 4.02)) == [pytest.approx(span) for span in ((5.0, 5.02), (5.0, 5.02))]
    assert times(3.0, 4.0, (3.2, 3.4)) == [(3.2, 3.4), (3.2, 3.4)]


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=12),
    st.lists(st.integers(0, 40), max_size=8, unique=True),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_times_stay_in_order(edges: list[int], cuts: list[int], start: int, length: int) -> None:
    marks, edges = sorted(cuts), sorted(edges)
    pauses = list(zip(marks[::2], marks[1::2], strict=False))
    words = tuple(Word(" a", a / 4, b / 4, 1.0) for a, b in pairwise(edges) if a < b)
    found = within_speech(
        Segment(start / 4, (start + length) / 4, " a", (), words), [(a / 4, b / 4) for a, b in pauses]
    )
    assert 0 <= found.start < found.end <= 20
    assert all(found.start <= word.start < word.end <= found.end for word in found.words)
    flat = [edge for word in found.words for edge in (word.start, word.end)]
    assert flat == sorted(flat)


def test_digital_silence_is_a_pause() -> None:
    samples = np.ones(100, np.float32)
    samples[10:18] = samples[30:34] = samples[90:] = 0
    windows = RecordingWindows(iter([samples]), 60)
    windows.window()
    assert windows.pauses(60, 10) == [(1.0, 1.8)]
    windows.advance(31)
    windows.window()
    assert windows.pauses(60, 10) == [(3.1, 3.4)]  # which began before the window
    windows.advance(20)
    windows.window()
    assert windows.pauses(49, 10) == [(9.0, 10.0)]


def test_runs() -> None:
    assert runs(np.array([True, True, False, True])) == [(0, 2), (3, 4)]
    assert runs(np.zeros(3, bool)) == runs(np.zeros(0, bool)) == []
