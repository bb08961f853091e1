"""Read audio from wherever people have it: float32 at the rate that a model wants, whole or block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from sys import float_info
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nest._optional import need
from nest.errors import InputError
from nest.tasks._audio_files import BinaryFile
from nest.tasks._audio_readers import DamagedAudioWarning, Frames, Reader, is_array, reader_of
from nest.tasks._samples import mix

__all__ = ["AudioSource", "AudioStream", "Channels", "DamagedAudioWarning", "load", "resample", "stream"]

AudioSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryFile | NDArray[Any]

Channels: TypeAlias = Literal["mix", "split"]

RATES = (1000, 10_000_000)
"""Below is no speech: a header that says so would make hours of a few bytes."""

BLOCK_SECONDS = 30.0
_LONGEST = 1e9
"""Seconds, over those of any recording."""


def load(
    source: AudioSource,
    rate: int | None = None,
    *,
    target: int = 16000,
    start: float = 0.0,
    duration: float | None = None,
    channels: Channels = "mix",
) -> NDArray[np.float32]:
    """Return the recording `source` at `target` samples a second.

    Args:
        source: the path of a file, its bytes, a binary file object (read from where it stands), or an array:
            int16, int32, float32 or float64, of shape [samples], [channels, samples] or [samples, channels]
            (the shorter axis is the channels). Files may be wav, flac, mp3, ogg, or whatever else the installed
            libsndfile decodes, and with the extra `transcribe` also m4a, aac, and the audio track of mp4, mkv and
            webm; their content decides, not their name.
        rate: samples a second of an array; `target` if left out. A file states its own rate, and a `rate`
            that contradicts it is an error.
        target: samples a second of the result.
        start, duration: which part of the recording, in seconds; up to its end if `duration` is left out.
        channels: `"mix"` gives their mean, except that opposite channels, which would cancel, give the one with the
            most energy; `"split"` gives each by itself.

    Returns:
        float32, at least one sample, finite, nominally in [-1, 1]: [samples], or [channels, samples] where split.

    Raises:
        InputError: a missing or unreadable file, a directory, something that is not audio, no audio track, no
            samples, NaN or infinite samples, an array of another dtype or rank, or a `start` past the end.
        MissingDependencyError: `soundfile`, `av` or `soxr` is needed and not installed.

    Warns:
        DamagedAudioWarning: a part could not be decoded, such as a damaged end; what could be is returned.
    """
    with AudioStream(
        source, rate, target=target, start=start, duration=duration, channels=channels
    ) as opened:
        frames = opened.whole()
        mixed = mix(frames) if channels == "mix" else frames
        return resample(mixed, opened.reader.rate, target).T


def stream(
    source: AudioSource,
    rate: int | None = None,
    *,
    target: int = 16000,
    start: float = 0.0,
    duration: float | None = None,
    channels: Channels = "mix",
    block: float = BLOCK_SECONDS,
) -> AudioStream:
    """Return the recording `source` as an iterator of blocks, so that one of any length takes bounded memory.

    As `load`, except that whether channels cancel is judged anew for each block of `block` seconds; the last may be
    shorter. Blocks are float32 [samples], or [channels, samples]. Errors about the file itself come at once, those
    about what is in it while it is read. Use it as a context manager, or read it to its end.
    """
    return AudioStream(
        source, rate, target=target, start=start, duration=duration, channels=channels, block=block
    )


class AudioStream(Iterator[NDArray[np.float32]]):
    """The blocks of a recording; see `stream`.

    Attributes:
        name: what messages call the recording.
        seconds: how long it will be, as far as that is known beforehand.
        start: where it begins in the recording, in seconds. channels: how many the recording has.
    """

    def __init__(
        self,
        source: AudioSource,
        rate: int | None,
        *,
        target: int,
        start: float,
        duration: float | None,
        channels: Channels,
        block: float = BLOCK_SECONDS,
    ) -> None:
        _check_rates(rate, target)
        _check_part(start, duration, channels)
        self._part = _Part(start, duration)
        self._target, self._channels, self._block = target, channels, block
        self._closing = ExitStack()
        try:
            self.reader = reader_of(source, rate or target, self._closing)
            if not is_array(source):
                _check_own_rate(self.reader, rate)
        except BaseException:
            self._closing.close()
            raise
        self.name = self.reader.name
        self.start = float(start)
        self.channels = self.reader.channels
        known = self.reader.seconds
        self.seconds = None if known is None else self._part.of(known)
        self._blocks = self.read()

    def __next__(self) -> NDArray[np.float32]:
        try:
            return next(self._blocks)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> AudioStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; reading is over."""
        self._blocks.close()
        self._closing.close()

    def whole(self) -> Frames:
        """All frames at the recording's own rate: float32 [samples, channels]."""
        parts = list(self._part.cut(self.reader))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def read(self, channel: int | None = None) -> Any:
        """The blocks from the beginning, once more; of one channel alone where it is given: float32 [samples]."""
        reader, target = self.reader, self._target
        convert = _Converter(reader.rate, target)
        pieces = _gathered(self._part.cut(reader), max(1, round(self._block * reader.rate)))
        following = next(pieces, None)
        while following is not None:
            frames, following = following, next(pieces, None)
            done = convert(self._wanted(frames, channel), last=following is None)
            if len(done):
                yield done.T

    def _wanted(self, frames: Frames, channel: int | None) -> NDArray[np.float32]:
        if channel is not None:
            return np.ascontiguousarray(frames[:, channel])
        return mix(frames) if self._channels == "mix" else frames


def resample(samples: NDArray[np.float32], rate: int, target: int) -> NDArray[np.float32]:
    """Return `samples` [n] or [n, channels] of `rate` a second at `target`: about n * target / rate, at least one."""
    if rate == target:
        return samples
    converted: NDArray[np.float32] = _soxr(rate, target).resample(samples, rate, target)
    return converted if len(converted) else samples[:1]


def _soxr(rate: int, target: int) -> Any:
    return need("soxr", extra="audio", purpose=f"convert audio from {rate} to {target} samples a second")


class _Converter:
    """`resample` for blocks that follow one another."""

    def __init__(self, rate: int, target: int) -> None:
        self._rates = rate, target
        self._stream: Any = None

    def __call__(self, block: NDArray[np.float32], *, last: bool) -> NDArray[np.float32]:
        rate, target = self._rates
        if rate == target:
            return block
        if self._stream is None:
            if last:
                return resample(block, rate, target)
            channels = 1 if block.ndim == 1 else block.shape[1]
            self._stream = _soxr(rate, target).ResampleStream(rate, target, channels, dtype="float32")
        converted: NDArray[np.float32] = self._stream.resample_chunk(block, last=last)
        return converted


@dataclass(frozen=True)
class _Part:
    """A stretch of a recording, in seconds."""

    start: float
    duration: float | None
    end: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "end", float("inf") if self.duration is None else self.start + self.duration)

    def of(self, seconds: float) -> float:
        """How much of a recording of so many seconds it is."""
        return max(min(seconds, self.end) - self.start, 0.0)

    def cut(self, reader: Reader) -> Iterator[Frames]:
        """The frames of the stretch.

        Raises:
            InputError: the recording ends before it begins.
        """
        first = _frames(self.start, reader.rate)
        left = None if self.duration is None else max(1, _frames(self.duration, reader.rate))
        count = 0
        for frames in reader.blocks(first):
            taken = frames if left is None else frames[: left - count]
            count += len(taken)
            if len(taken):
                yield taken
            if left is not None and count >= left:
                return
        if count == 0:
            length = f" ({reader.seconds:.2f} s)" if reader.seconds else ""
            raise InputError(f"start={self.start:g} is past the end of {reader.name}{length}.")


def _frames(seconds: float, rate: int) -> int:
    """How many frames that is, in 64 bits however long it is."""
    return round(min(seconds, _LONGEST) * rate)


def _gathered(parts: Iterator[Frames], size: int) -> Iterator[Frames]:
    """The same frames in blocks of `size`; the last may be smaller."""
    held: list[Frames] = []
    count = 0
    for part in parts:
        held.append(part)
        count += len(part)
        if count >= size:
            frames = held[0] if len(held) == 1 else np.concatenate(held)
            full = count - count % size
            for at in range(0, full, size):
                yield frames[at : at + size]
            held, count = [frames[full:]], count - full
    if count:
        yield held[0] if len(held) == 1 else np.concatenate(held)


def _check_rates(rate: Any, target: Any) -> None:
    for label, value in (("rate", rate), ("target", target)):
        if value is not None:
            _check_rate(value, f"{label}={value!r}")


def _check_own_rate(reader: Reader, rate: int | None) -> None:
    if rate not in (None, reader.rate):
        raise InputError(
            f"rate={rate} was given for {reader.name}, whose own header says {reader.rate}. The argument is for "
            "arrays of samples, which carry no rate: leave it out."
        )
    _check_rate(reader.rate, f"of {reader.name}, {reader.rate},")


def _check_rate(rate: Any, what: str) -> None:
    integer = isinstance(rate, SupportsIndex) and not isinstance(rate, bool)
    if not integer or not RATES[0] <= rate <= RATES[1]:
        raise InputError(
            f"The sample rate {what} is no integer from {RATES[0]} to {RATES[1]} samples a second."
        )


def _check_part(start: Any, duration: Any, channels: Any) -> None:
    if not _is_number(start) or start < 0:
        raise InputError(f"start={start!r} is no time in a recording; expected seconds from 0.")
    if duration is not None and not (_is_number(duration) and duration > 0):
        raise InputError(f"duration={duration!r} is no length; expected seconds over 0.")
    if channels not in ("mix", "split"):
        raise InputError(f"channels={channels!r} is unknown; expected 'mix' or 'split'.")


def _is_number(value: Any) -> bool:
    # Compared, since an integer may be too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max
