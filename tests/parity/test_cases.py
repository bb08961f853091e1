"""What others make up text of, lose words of, or lose times in, by tiny.en's real weights.

Two hours in bounded memory: tests/tasks/test_long_form.py. A killed job: tests/cli/test_transcribe.py. Every container,
and damage: tests/tasks/test_audio_files.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import InputError
from nest.tasks import audio

from ..tasks.recordings import contained

pytestmark = pytest.mark.weights

RATE = 16000
AMIABLE = "He might even have been made amiable himself."
CLIPS = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930")
SAID = ("ask what you can do for your country", "to do for them", "more respectable than he was", AMIABLE)
NOISES = [(10, -60, False), (10, -60, True), (35, -60, False), (35, -60, True), (35, -30, True)]


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


def chord(times: np.ndarray, *hertz: float) -> np.ndarray:
    return np.sum([np.sin(2 * np.pi * each * times) for each in hertz], axis=0)


def in_order(made: Any) -> None:
    """No segment is without text or time, none begins before the one before it ends, and none lies outside."""
    assert all(segment.text.strip() for segment in made.segments)
    edges = [0.0, *(e for s in made.segments for e in (s.start, s.end)), made.duration]
    assert edges == sorted(edges)
    assert all(segment.start < segment.end for segment in made.segments)
    for segment in made.segments:
        assert not segment.words or "".join(word.text for word in segment.words) == segment.text
    inner = [edge for s in made.segments for word in s.words for edge in (word.start, word.end)]
    assert inner == sorted(inner)


@pytest.mark.parametrize("seconds", [10, 35])
def test_digital_silence_has_no_text(speech: Any, seconds: float) -> None:
    for vad in (False, True):
        made = speech(silence(seconds), vad=vad)
        assert (made.text, made.segments) == ("", ())
        assert made.duration == seconds


@pytest.mark.parametrize(("seconds", "level", "vad"), NOISES)
def test_noise_has_no_text(speech: Any, seconds: float, level: float, vad: bool) -> None:
    assert speech(noise(seconds, level), vad=vad).segments == ()


@pytest.mark.parametrize("kind", ["chord", "chords", "drums"])
def test_music_has_no_text(speech: Any, kind: str) -> None:
    times = np.arange(35 * RATE) / RATE
    music = {
        "chord": lambda: chord(times, 220, 277.2, 329.6),
        # Their changes are what the detector comes nearest to taking for speech.
        "chords": lambda: np.where(
            times % 4 < 2, chord(times, 220, 277.2, 329.6), chord(times, 174.6, 220, 261.6)
        ),
        "drums": lambda: (
            np.sin(300 * (times % 0.5)) * np.exp(-12 * (times % 0.5)) + noise(35, -20) * (times % 1 < 0.1)
        ),
    }[kind]()
    samples = (music / np.abs(music).max() * 0.8).astype(np.float32)
    for part in (samples, samples[: 10 * RATE]):
        assert speech(part, vad=True).segments == ()


@pytest.mark.parametrize("vad", [True, False])
@pytest.mark.parametrize("level", [None, -60])
def test_twenty_seconds_of_silence_between_two_sentences(
    speech: Any, clip: Callable[[str], np.ndarray], vad: bool, level: float | None
) -> None:
    one = clip("librivox_0930")
    begins = len(one) / RATE + 20
    between = silence(20) if level is None else noise(20, level)
    made = speech(np.concatenate([one, between, one]), vad=vad, timestamps=True)
    assert [segment.text.strip() for segment in made.segments] == [AMIABLE, AMIABLE]
    assert made.segments[1].start == pytest.approx(begins, abs=0.3)
    if vad or level is None:  # of noise, only the detector knows that it is none
        assert made.segments[0].end < begins - 19


def test_a_sentence_after_a_pause_is_not_lost(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    """tiny.en takes the pause after the first for the window's end."""
    names = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930", "jfk")
    recording = np.concatenate([part for name in names for part in (clip(name), silence(1.5))])
    made = speech(recording, vad=True)
    for words in ("Mr. John Dashwood", "power to do for them", "more amiable woman", "made amiable himself"):
        assert words in made.text
    assert made.text.count("what you can do for your country") == 2


@pytest.mark.parametrize("seconds", [29.4, 30.0, 31.0])
def test_about_a_window_of_speech(speech: Any, clip: Callable[[str], np.ndarray], seconds: float) -> None:
    recording = np.concatenate([clip(name) for name in (*CLIPS, "jfk")])[: round(seconds * RATE)]
    made = speech(recording, timestamps=True)
    for said in SAID:
        assert said in made.text
    assert made.text.count("fellow Americans") == 2
    in_order(made)
    assert made.segments[-1].end <= made.duration == seconds


@pytest.mark.parametrize("vad", [True, False])
def test_times_go_on_after_the_first_window(
    speech: Any, clip: Callable[[str], np.ndarray], vad: bool
) -> None:
    """65 s of speech without a pause."""
    recording = np.concatenate([clip(name) for name in CLIPS * 3])[: 65 * RATE]
    made = speech(recording, vad=vad, word_timestamps=True)
    in_order(made)
    assert made.text.count("what you can do for your country") == 3
    assert [made.text.count(said) for said in SAID[1:]] == [2, 2, 2]
    starts = [word.start for segment in made.segments for word in segment.words]
    assert all(later - earlier < 2 for earlier, later in pairwise(starts))
    assert starts[-1] > 63
    assert made.segments[-1].end <= made.duration == 65


@pytest.mark.parametrize(
    ("word", "name", "begins", "ends", "vad"),
    [("himself", "librivox_0930", 2.32, 2.9, True), ("country", "jfk", 9.92, 10.6, False)],
)
def test_times_do_not_drift(
    speech: Any,
    clip: Callable[[str], np.ndarray],
    word: str,
    name: str,
    begins: float,
    ends: float,
    vad: bool,
) -> None:
    """Five minutes with a word every 10 s."""
    one = clip(name)[round(begins * RATE) : round(ends * RATE)]
    inward = np.arange(len(one), dtype=np.float32) / (0.01 * RATE)
    one = one * np.minimum(1, np.minimum(inward, inward[::-1]))  # without clicks
    recording = np.tile(np.concatenate([one, silence(10)[len(one) :]]), 30)
    options = {"temperature": 0, "condition_on_previous_text": False}
    made = speech(recording, vad=vad, word_timestamps=True, **options)
    words = [word for segment in made.segments for word in segment.words]
    assert {said.text.strip(" .,") for said in words} == {word}
    assert [said.start for said in words] == pytest.approx(list(range(0, 300, 10)), abs=0.2)
    assert all(said.end < said.start + 1 for said in words)


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


def test_an_mp3_whose_last_two_kilobytes_are_noise(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    samples = np.concatenate([clip("librivox_0930"), silence(1)])
    content = contained(audio.resample(samples, RATE, 44100), 44100, "mp3", "libmp3lame")
    with pytest.warns(audio.DamagedAudioWarning):
        made = speech(content[:-2000] + np.random.default_rng(3).bytes(2000))
    assert made.text.startswith("He might even have been made amiable")


def test_a_prompt_of_500_words(speech: Any, clip: Callable[[str], np.ndarray]) -> None:
    prompt = " ".join(["Elinor"] * 499 + ["Marianne."])
    assert "amiable himself" in speech(clip("librivox_0930"), initial_prompt=prompt, timestamps=True).text
