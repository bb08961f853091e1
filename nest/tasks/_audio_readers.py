"""Frames of a recording, some at a time, whatever they come from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError
from nest.tasks._audio_files import EncodedFile, open_encoded
from nest.tasks._samples import as_frames

__all__ = ["ArrayReader", "DamagedAudioWarning", "Frames", "Reader", "is_array", "reader_of", "warn_damaged"]

Frames: TypeAlias = NDArray[np.float32]
"""float32 [samples, channels], nominally in [-1, 1]."""


class DamagedAudioWarning(UserWarning):
    """A part of a recording could not be decoded, and the rest was used."""


class Reader(Protocol):
    """A recording whose frames come in order.

    Attributes:
        name: what messages call it.
        rate: samples a second. channels: how many.
        seconds: its length, as far as it is known beforehand.
    """

    name: str
    rate: int
    channels: int
    seconds: float | None

    def blocks(self, first: int) -> Iterator[Frames]:
        """The frames from index `first` on; every call begins anew.

        Raises:
            InputError: nothing could be decoded.
        """


class ArrayReader:
    """Samples that are in memory; see `nest.tasks._samples.as_frames` for what they may be."""

    def __init__(self, array: Any, rate: int) -> None:
        try:
            samples = np.asarray(array)
        except (TypeError, ValueError, RuntimeError) as error:  # a tensor that trains, is sparse or elsewhere
            raise InputError(
                f"The array given cannot be read as numbers: {str(error).rstrip('.')}."
            ) from error
        self.name = "the array"
        self.rate = rate
        self._frames = as_frames(samples, self.name)
        self.channels = self._frames.shape[1]
        self.seconds: float | None = len(self._frames) / rate

    def blocks(self, first: int) -> Iterator[Frames]:
        yield self._frames[first:]


def is_array(source: object) -> bool:
    """Whether `source` holds samples: tensors of every framework do, a memoryview holds an encoded file."""
    return hasattr(source, "__array__") and not isinstance(source, memoryview)


def reader_of(source: Any, rate: int, closing: ExitStack) -> Reader:
    """Return what reads `source`; `rate` is that of an array.

    Raises:
        InputError: it cannot be read, or is no audio.
        MissingDependencyError: neither `soundfile` nor `av` is installed.
    """
    if is_array(source):
        return ArrayReader(source, rate)
    encoded = open_encoded(source, closing)
    # A decoder is imported with its library.
    if _plain(encoded) or find_spec("av") is None:
        from nest.tasks._libsndfile import NotDecodedError, SoundFileReader

        try:
            return SoundFileReader(encoded, closing)
        except NotDecodedError as error:
            if find_spec("av") is None:
                raise InputError(
                    f"{error} wav, flac, mp3 and ogg files are read here; pip install 'nest-zoo[transcribe]' adds "
                    "m4a, aac, and the audio tracks of mp4, mkv and webm."
                ) from error
    from nest.tasks._libav import LibavReader

    return LibavReader(encoded, closing)


_PLAIN = (b"RIFF", b"RIFX", b"RF64", b"riff", b"FORM", b"fLaC", b"OggS", b"caff", b".snd", b"NIST")


def _plain(encoded: EncodedFile) -> bool:
    """Whether the file begins as one that libsndfile decodes at its best: exact lengths, seeking without decoding.

    mp3 is not among them, as its decoder writes what it thinks of damaged frames to standard error.
    """
    return encoded.start.startswith(_PLAIN)


def warn_damaged(message: str) -> None:
    warnings.warn(message, DamagedAudioWarning, stacklevel=2)
