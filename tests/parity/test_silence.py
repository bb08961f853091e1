"""Silence, pauses and edges, by tiny.en's real weights: what others make up text of, or lose times in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import InputError
from nest.tasks import audio

pytestmark = pytest.mark.weights

RATE = 16000
AMIABLE = "He might even have been made amiable himself."


@pytest.fixture(scope="module")
def speech() -> Any:
    return nest.pipeline("whisper-tiny.en", backend="onnx")


@pytest.fixture(scope="module")
def clip() -> Callable[[str], np.ndarray]:
    folder = Path(__file__).parents[2] / "assets" / "audio"
    return lambda name: audio.load(folder / f"{name}.wav")


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), np.float32)


def noise(seconds: float, level: float) -> np.ndarray:
    """White noise of so many dB below full scale."""
    drawn = np.random.default_rng(0).standard_normal(round(seconds * RATE))
    return (drawn * 10 ** (level / 20)).astype(np.float32)


@pytest.mark.parametrize("seconds", [10, 35])
def test_digital_silence_has_no_text(speech: Any, seconds: float) -> None:
    for vad in (False, True):
        made = speech(silence(seconds), vad=vad)
        assert (made.text, made.segments) == ("", ())
        assert made.duration == seconds


@pytest.mark.parametrize(("seconds", "level"), [(10, -60), (35, -60), (35, -30)])
def test_noise_has_no_text(speech: Any, seconds: float, level: float) -> None:
    assert speech(noise(seconds, level), vad=True).segments == ()


def test_a_chord_has_no_text(speech: Any) -> None:
    times = np.arange(35 * RATE) / RATE
    chord = sum(np.sin(2 * np.pi * hertz * times) for hertz in (220, 277.2, 329.6)) * 0.2
    assert speech(chord.astype(np.float32), vad=True).segments == ()


def test_twenty_seconds_of_silence_between_two_sentences(
    speech: Any, clip: Callable[[str], np.ndarray]
) -> None:
    one = clip("librivox_0930")
    begins = len(one) / RATE + 20
    for between in (silence(20), noise(20, -60)):
        made = speech(np.concatenate([one, between, one]), vad=True, timestamps=True)
        assert [segment.text.strip() for segment in made.segments] == [AMIABLE, AMIABLE]
        assert made.segments[0].end < begins - 19
        assert made.segments[1].start == pytest.approx(begins, abs=0.3)


def test_a_sentence_after_a_pause_is_not_lost(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    """tiny.en takes the pause after the first for the window's end."""
    names = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930", "jfk")
    recording = np.concatenate([part for name in names for part in (clip(name), silence(1.5))])
    made = speech(recording, vad=True)
    for words in ("Mr. John Dashwood", "power to do for them", "more amiable woman", "made amiable himself"):
        assert words in made.text
    assert made.text.count("what you can do for your country") == 2


def test_times_do_not_drift(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    """Words every 10 s, for two minutes."""
    words = clip("librivox_0930")[: round(1.2 * RATE)]
    recording = np.tile(np.concatenate([words, silence(10)[len(words) :]]), 12)
    starts = [segment.start for segment in speech(recording, vad=True).segments]
    assert starts == pytest.approx(list(range(0, 120, 10)), abs=0.2)


@pytest.mark.parametrize("seconds", [29.4, 30.0, 31.0])
def test_about_a_window_of_speech(speech: Any, clip: Callable[[str], np.ndarray], seconds: float) -> None:
    names = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930", "jfk")
    recording = np.concatenate([clip(name) for name in names])[: round(seconds * RATE)]
    made = speech(recording, timestamps=True)
    for said in (
        "ask what you can do for your country",
        "to do for them",
        "more respectable than he was",
        AMIABLE,
    ):
        assert said in made.text
    assert made.text.count("fellow Americans") == 2
    edges = [edge for segment in made.segments for edge in (segment.start, segment.end)]
    assert edges == sorted(edges)
    assert edges[-1] <= made.duration == seconds


@pytest.mark.parametrize("length", [1, 1600])
def test_too_short_for_a_word(speech: Any, length: int) -> None:
    with pytest.raises(InputError, match="too short for a word"):
        speech(noise(1, -20)[:length], vad=True)


def test_no_sample_at_all(speech: Any) -> None:
    with pytest.raises(InputError, match="There are no samples in the array"):
        speech(np.zeros(0, np.float32))


def test_four_threads_on_one_pipeline(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    names = ("librivox_0870", "librivox_0920", "librivox_0930", "librivox_0870")
    alone = {name: speech(clip(name), vad=True, timestamps=True).text for name in names}
    with ThreadPoolExecutor(4) as pool:
        texts = pool.map(lambda name: speech(clip(name), vad=True, timestamps=True).text, names)
        assert list(texts) == [alone[name] for name in names]


def test_arrays_of_every_kind_say_the_same(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    one = clip("librivox_0930")
    eight = audio.resample(one, RATE, 8000)
    high = audio.resample(one, RATE, 44100).astype(np.float64)
    stereo = np.stack([audio.resample(one, RATE, 48000)] * 2)
    sources = [
        ((eight * 32767).astype(np.int16), 8000), (high, 44100), (stereo, 48000), (stereo.T, 48000),
        (np.stack([one, np.zeros_like(one)]), RATE), (np.stack([one, -one]), RATE),
    ]  # fmt: skip
    for source, rate in sources:
        assert speech(source, rate=rate).text == AMIABLE
