from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nest.tasks._recording_windows import RecordingWindows


@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.integers(1, 12),
    st.lists(st.integers(1, 15), max_size=12),
    st.integers(0, 4),
)
def test_a_window_is_over_what_it_should_be(
    sizes: list[int], size: int, moves: list[int], beyond: int
) -> None:
    recording = np.arange(sum(sizes), dtype=np.float32)
    blocks = iter(np.split(recording, np.cumsum(sizes)[:-1])) if sizes else iter(())
    windows, at = RecordingWindows(blocks, size), 0
    for move in moves:
        np.testing.assert_array_equal(windows.window(), recording[at : at + size])
        assert windows.left(beyond) == len(recording[at : at + size + beyond])
        windows.advance(move)
        at = min(at + move, len(recording))
        assert windows.at == at


def test_no_more_is_read_than_a_window_needs() -> None:
    def blocks() -> Iterator[np.ndarray]:
        for _ in range(100):
            read.append(1)
            yield np.zeros(10, np.float32)

    read: list[int] = []
    windows = RecordingWindows(blocks(), 25)
    windows.window()
    assert len(read) == 3
    windows.advance(25)
    windows.window()
    assert len(read) == 5
