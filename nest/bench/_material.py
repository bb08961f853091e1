"""Recordings with transcripts for `nest.bench.transcribe_cpu`: the repository's clips, and what can be made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nest.evaluating.dataset import read_dataset
from nest.tasks import audio

__all__ = ["LONG", "Spoken", "material"]

RATE = 16000
LONG = "long"
"""The name of the recording whose time is taken: all clips in order, twice, with half a second of silence between."""

Samples = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Spoken:
    """A recording at 16 kHz, and what is said in it; `worse` says that it was made so."""

    name: str
    samples: Samples
    reference: str
    worse: bool = True


def material(folder: Path) -> list[Spoken]:
    """The long recording; each clip as it is, at a telephone's rate, quiet, and in noise of two levels; the long one in
    noise.

    Raises:
        InputError: there are no clips with transcripts in `folder`.
    """
    clips = [
        Spoken(one.path.stem, audio.load(one.path), one.reference, worse=False)
        for one in read_dataset(folder).recordings
    ]
    long = _long(clips)
    return [long, *(variant for clip in clips for variant in _variants(clip)), _noisy(long, 10)]


def _long(clips: list[Spoken]) -> Spoken:
    pause = np.zeros(RATE // 2, np.float32)
    parts = [part for clip in 2 * clips for part in (clip.samples, pause)]
    return Spoken(
        LONG, np.concatenate(parts[:-1]), " ".join(clip.reference for clip in 2 * clips), worse=False
    )


def _variants(clip: Spoken) -> Iterator[Spoken]:
    narrow = audio.resample(audio.resample(clip.samples, RATE, 8000), 8000, RATE)
    yield clip
    yield Spoken(f"{clip.name}, 8 kHz", narrow, clip.reference)
    yield Spoken(f"{clip.name}, -20 dB", clip.samples * np.float32(0.1), clip.reference)
    yield _noisy(clip, 20)
    yield _noisy(clip, 5)


def _noisy(clip: Spoken, decibels: float) -> Spoken:
    """White noise so many decibels under the clip's mean power, the same every time."""
    power = float(np.mean(clip.samples.astype(np.float64) ** 2)) * 10 ** (-decibels / 10)
    noise = np.random.default_rng(0).standard_normal(len(clip.samples)) * power**0.5
    return Spoken(
        f"{clip.name}, noise at {decibels:g} dB", (clip.samples + noise).astype(np.float32), clip.reference
    )
