"""Windows by voice activity, with a detector that hears loudness; and where the real one's file may come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nest.errors import FetchError
from nest.tasks import voice
from nest.tasks._voiced_windows import VoicedWindows
from nest.tasks.voice import CHUNK, RATE, Voice


class Loudness:
    """Stands in for the network: the louder, the likelier it is speech. It counts its steps in the state."""

    def run(self, names: object, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        given, state = inputs["input"], inputs["state"]
        assert given.shape == (1, CHUNK + 64)
        assert given.dtype == np.float32
        return np.array([[float(np.abs(given[0, 64:]).max())]], np.float32), state + 1


def recording(*parts: float) -> np.ndarray:
    """Seconds of noise that is quiet, loud, quiet ..."""
    rng = np.random.default_rng(0)
    pieces = [rng.uniform(0.5, 1, round(s * RATE)) * (0.01, 1.0)[i % 2] for i, s in enumerate(parts)]
    return np.concatenate(pieces).astype(np.float32)


def windows(samples: np.ndarray, block: float = 3.0, size: float = 10.0) -> Iterator[tuple[float, float]]:
    """Where the windows begin and end, in seconds, each done as a whole."""
    blocks = iter(np.split(samples, range(round(block * RATE), len(samples), round(block * RATE))))
    moving = VoicedWindows(blocks, round(size * RATE), Voice(Loudness()))
    while len(window := moving.speech()):
        np.testing.assert_array_equal(window, samples[moving.at : moving.at + len(window)])
        yield moving.at / RATE, (moving.at + len(window)) / RATE
        moving.advance(len(window))


@pytest.mark.parametrize("block", [0.01, 0.7, 3.0, 100.0])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((35,), []),
        ((0, 5), [(0, 5)]),
        ((0, 25), [(0, 10), (10, 20), (20, 25)]),
        # Speech begins 0.3 s after its window does, and a pause ends one; a short silence is left to the model.
        ((5, 1), [(4.7, 6)]),
        ((1.5, 1), [(0, 2.5)]),
        ((0, 1, 1.5, 1), [(0, 3.5)]),
        ((0, 3, 20, 4), [(0, 3.3), (22.7, 27)]),
        ((0, 1, 3, 1, 3, 1), [(0, 1.3), (3.7, 5.3), (7.7, 9)]),
        ((0, 1, 12), [(0, 1.3)]),
        ((9.5, 5), [(9.2, 14.5)]),
    ],
)
def test_windows_are_where_somebody_speaks(
    parts: tuple[float, ...], expected: list[tuple[float, float]], block: float
) -> None:
    found = list(windows(recording(*parts), block))
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        assert got == pytest.approx(want, abs=2 * CHUNK / RATE)


def doubtful(*parts: float) -> np.ndarray:
    """A `recording`, of which every second loud part is no louder than a chord."""
    samples, at = recording(*parts), 0
    for index, length in enumerate(parts):
        if index % 4 == 1:
            samples[round(at * RATE) : round((at + length) * RATE)] *= 0.5
        at += length
    return samples


@pytest.mark.parametrize("block", [0.01, 0.7, 3.0, 100.0])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((1, 1, 30), []),
        ((0, 25), []),
        ((5, 1), []),
        # What may be speech is, where speech is sure no more than 2 s from it; before a window, after it, or across it.
        ((0, 1, 1, 3), [(0, 5)]),
        ((8.5, 1, 1, 3), [(8.2, 13.5)]),
        ((5, 1, 5, 1), [(10, 12)]),
        ((0, 1, 5, 1, 5, 1, 5, 1), [(5.7, 7.3), (17.3, 19)]),
    ],
)
def test_what_is_never_sure_to_be_speech_is_none(
    parts: tuple[float, ...], expected: list[tuple[float, float]], block: float
) -> None:
    found = list(windows(doubtful(*parts), block))
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        assert got == pytest.approx(want, abs=2 * CHUNK / RATE)


def test_pauses_of_a_window() -> None:
    samples = recording(2, 1, 0.3, 1, 4, 1)
    moving = VoicedWindows(iter([samples]), 10 * RATE, Voice(Loudness()))
    moving.speech()
    near = pytest.approx
    found = moving.pauses(len(samples), RATE)
    assert [edge for pause in found for edge in pause] == near([0, 1.9, 4.4, 8.2], abs=0.05)
    moving.advance(8 * RATE)
    moving.window()
    assert moving.pauses(RATE, RATE) == found[1:]
    moving = VoicedWindows(iter([recording(0, 1, 1)]), 10 * RATE, Voice(Loudness()))
    moving.window()
    ((begins, ends),) = moving.pauses(2 * RATE, RATE)
    assert (begins, ends) == (near(1.1, abs=0.05), np.inf)


def test_hours_are_listened_to_in_bounded_memory() -> None:
    """Two hours, half of them speech: beside a window and a block, a number is kept of every 32 ms."""
    block = recording(15, 15)
    moving = VoicedWindows((block for _ in range(240)), 30 * RATE, Voice(Loudness()))
    held, heard = [], 0
    while len(window := moving.speech()):
        held.append(len(moving._held))
        heard += len(window)
        moving.advance(len(window))
    assert moving.at == 7200 * RATE
    assert heard / RATE == pytest.approx(240 * 15, rel=0.05)
    assert max(held) <= 60 * RATE
    assert moving._likely.nbytes == 7200 * RATE // CHUNK * 4  # less than a megabyte


def test_speech_within_a_window() -> None:
    samples = recording(0, 2, 1.5, 1)
    windows = VoicedWindows(iter([samples]), 10 * RATE, Voice(Loudness()))
    windows.speech()
    assert windows.speaks(2 * RATE, len(samples))
    assert not windows.speaks(2 * RATE, 3 * RATE)
    assert not windows.speaks(round(4.2 * RATE), len(samples))  # too little
    windows.advance(3 * RATE)
    assert windows.speaks(0, round(1.5 * RATE))


def test_chunks_do_not_depend_on_blocks() -> None:
    samples = recording(0.5, 0.5, 0.31)
    whole = Voice(Loudness())
    expected = [*whole.hear(samples), *whole.finish()]
    parted = Voice(Loudness())
    found = [p for part in np.array_split(samples, 97) for p in parted.hear(part)]
    assert [*found, *parted.finish()] == expected
    assert len(expected) == -(-len(samples) // CHUNK)
    assert len(whole.finish()) == 0 or len(samples) % CHUNK


def test_without_a_network_the_detector_s_file_is_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path))
    with pytest.raises(
        FetchError, match=r"'silero_vad.onnx'.* is not here, and the network is not to be asked"
    ):
        voice.detector_file(local_files_only=True)


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ('sources = ["hub"]\n', "the Python package index is not allowed by .*nest.toml"),
        ('licenses = ["Apache-2.0"]\n', "its licence, MIT, is not allowed by .*nest.toml"),
    ],
)
def test_a_site_s_rules_hold_for_the_detector(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: str, said: str
) -> None:
    (tmp_path / "nest.toml").write_text(site)
    monkeypatch.setenv("NEST_CONFIG", str(tmp_path / "nest.toml"))
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(FetchError, match=said):
        voice.detector_file()
