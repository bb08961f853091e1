"""Where recordings are cut into windows of a batch: at silences that are heard, or that a detector knows of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.tasks._cuts import Window, cuts
from nest.tasks._recording_windows import RecordingWindows
from nest.tasks._voiced_windows import VoicedWindows
from nest.tasks.voice import CHUNK, RATE, Voice

from .test_voiced_windows import Loudness, recording

SIZE = 30.0


def in_blocks(samples: np.ndarray, block: float = 7.0) -> Iterator[np.ndarray]:
    yield from np.split(samples, range(round(block * RATE), len(samples), round(block * RATE)))


def heard(samples: np.ndarray, block: float = 7.0) -> RecordingWindows:
    return RecordingWindows(in_blocks(samples, block), round(SIZE * RATE))


def voiced(samples: np.ndarray, block: float = 7.0) -> RecordingWindows:
    return VoicedWindows(in_blocks(samples, block), round(SIZE * RATE), Voice(Loudness()))


def spans(windows: list[Window]) -> list[tuple[float, float]]:
    return [(window.at / RATE, (window.at + len(window)) / RATE) for window in windows]


@pytest.mark.parametrize("over", [heard, voiced])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # Seconds that are loud, quiet, loud ...: the last silence of the last third, if it is as long as others.
        ((18, 1, 3, 1, 4, 1, 12), [27.5]),
        # A longer silence before a short one, unless it is too early.
        ((18, 0.2, 5, 1, 4, 0.1, 12), [23.7]),
        ((10, 1.5, 15, 0.2, 13), [26.6]),
        # As late as it can be where all are alike, but so that 5 s are left.
        ((0, 0, 36), [30]),
        ((0, 0, 32), [27]),
        ((0, 0, 70), [30, 60]),
        # A whole window is one.
        ((0, 0, 30), []),
        ((0, 0, 3), []),
    ],
)
def test_a_cut_is_where_it_is_quiet(over: object, parts: tuple[float, ...], expected: list[float]) -> None:
    samples = recording(0, *parts)
    found = spans(list(cuts(over(samples), RATE)))  # type: ignore[operator]
    assert [end for _, end in found[:-1]] == pytest.approx(expected, abs=1.0)
    edges = [edge for span in found for edge in span]
    assert (edges[0], edges[-1]) == (0, pytest.approx(len(samples) / RATE))
    assert edges[1:-1:2] == edges[2::2]


def test_a_cut_is_in_the_middle_of_a_short_silence() -> None:
    samples = recording(0, 25, 0.2, 15)
    for over in (heard, voiced):
        (_, end), _ = spans(list(cuts(over(samples), RATE)))
        assert 25.03 < end < 25.17


def test_between_windows_there_is_only_a_pause() -> None:
    samples = recording(4, 8, 3, 9, 1, 2)
    found = spans(list(cuts(voiced(samples), RATE)))
    assert found == [pytest.approx(span, abs=0.05) for span in ((3.7, 12.3), (14.7, 27))]
    (only,) = cuts(heard(samples), RATE)
    assert only.at == 0
    np.testing.assert_array_equal(only.samples, samples)


def test_nothing_is_cut_out_of_silence() -> None:
    assert list(cuts(heard(np.zeros(50 * RATE, np.float32)), RATE)) == []
    assert list(cuts(voiced(recording(40)), RATE)) == []
    assert list(cuts(heard(np.ones(1600, np.float32)), RATE)) == []


def test_a_window_knows_where_somebody_speaks_in_it() -> None:
    samples = recording(0, 24, 1, 2, 0.9, 9)
    first, second = cuts(voiced(samples), RATE)
    assert first.speech_after(0) == pytest.approx(26 * RATE, abs=2 * CHUNK)
    assert first.speech_after(24 * RATE + CHUNK) == pytest.approx(2 * RATE, abs=2 * CHUNK)
    rest = first.after(25 * RATE)
    np.testing.assert_array_equal(rest.samples, samples[rest.at : first.at + len(first)])
    assert (rest.at, rest.speech_after(RATE)) == (25 * RATE, pytest.approx(RATE, abs=2 * CHUNK))
    assert second.speech_after(0) == pytest.approx(9 * RATE, abs=2 * CHUNK)
    (unknown,) = cuts(heard(recording(0, 3)), RATE)
    assert (unknown.spoken, unknown.speech_after(0), unknown.after(5).spoken) == (None, 0, None)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 4000)), max_size=8),
    st.integers(1, 3000),
    st.integers(200, 3000),
)
def test_nothing_is_lost_or_heard_twice(parts: list[tuple[float, int]], block: int, size: int) -> None:
    samples = np.concatenate([np.full(count, level, np.float32) for level, count in parts] or [np.zeros(0)])
    blocks = iter(np.split(samples, range(block, len(samples), block)))
    moving, upto = RecordingWindows(blocks, size), 0
    for window in cuts(moving, 1000):
        assert 100 < len(window) <= size
        np.testing.assert_array_equal(window.samples, samples[window.at : window.at + len(window)])
        assert not samples[upto : window.at].any()
        upto = window.at + len(window)
    assert not samples[upto : moving.at].any()
    assert len(samples) - moving.at <= 100


def test_windows_are_read_as_they_are_asked_for() -> None:
    moving = heard(np.ones(300 * RATE, np.float32))
    source = cuts(moving, RATE)
    for number in (1, 2, 3):
        window = next(source)
        assert moving.at == window.at + len(window) == number * (30 * RATE - moving.chunk // 2)
        assert window.samples.base is None
