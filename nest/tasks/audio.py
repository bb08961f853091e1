"""Read audio from wherever people have it: one float32 channel at the rate that a model wants."""

from __future__ import annotations

import codecs
import io
import os
from pathlib import Path
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nest._optional import need
from nest.errors import InputError
from nest.tasks._samples import mono

__all__ = ["AudioSource", "load", "resample"]


class BinaryFile(Protocol):
    """An object with a `read` that returns bytes."""

    def read(self) -> bytes: ...


AudioSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryFile | NDArray[Any]


RATES = (1000, 10_000_000)
"""Below is no speech: a header that says so would make hours of a few bytes."""


def load(source: AudioSource, rate: int | None = None, *, target: int = 16000) -> NDArray[np.float32]:
    """Return the recording `source` as one channel at `target` samples a second.

    Args:
        source: the path of a file, its bytes, a binary file object (read from where it stands), or an array:
            int16, int32, float32 or float64, of shape [samples], [channels, samples] or [samples, channels]
            (the shorter axis is the channels). Files may be wav, flac, mp3, ogg, or whatever else the
            installed libsndfile decodes; their content decides, not their name.
        rate: samples a second of an array; `target` if left out. A file states its own rate, and a `rate`
            that contradicts it is an error.
        target: samples a second of the result.

    Returns:
        float32 [samples], at least one sample, finite, nominally in [-1, 1]. Channels are mixed by their
        mean, except that opposite channels, which would cancel, give the one with the most energy.

    Raises:
        InputError: a missing or unreadable file, a directory, something that is not audio, no samples, NaN
            or infinite samples, or an array of another dtype or rank.
        MissingDependencyError: `soundfile` or `soxr` is needed and not installed (extra `audio`).
    """
    for label, value in (("rate", rate), ("target", target)):
        if value is not None:
            _check_rate(value, f"{label}={value!r}")
    if _is_array(source):
        samples, own_rate = _as_array(source), rate or target
        name = "the array"
    else:
        name, encoded = _open(source)
        samples, own_rate = _decode(encoded, name)
        if rate not in (None, own_rate):
            raise InputError(
                f"rate={rate} was given for {name}, whose own header says {own_rate}. The argument is for "
                "arrays of samples, which carry no rate: leave it out."
            )
        _check_rate(own_rate, f"of {name}, {own_rate},")
    return resample(mono(samples, name), own_rate, target)


def _check_rate(rate: Any, what: str) -> None:
    integer = isinstance(rate, SupportsIndex) and not isinstance(rate, bool)
    if not integer or not RATES[0] <= rate <= RATES[1]:
        raise InputError(
            f"The sample rate {what} is no integer from {RATES[0]} to {RATES[1]} samples a second."
        )


def resample(samples: NDArray[np.float32], rate: int, target: int) -> NDArray[np.float32]:
    """Return `samples` [n] of `rate` a second at `target` a second: about n * target / rate, at least one."""
    if rate == target:
        return samples
    soxr = need("soxr", extra="audio", purpose=f"convert audio from {rate} to {target} samples a second")
    converted: NDArray[np.float32] = soxr.resample(samples, rate, target)
    return converted if len(converted) else samples[:1]


def _is_array(source: object) -> bool:
    # Tensors of every framework convert themselves; a memoryview does too, but holds an encoded file.
    return hasattr(source, "__array__") and not isinstance(source, memoryview)


def _as_array(source: Any) -> NDArray[Any]:
    try:
        return np.asarray(source)
    except (TypeError, ValueError, RuntimeError) as error:  # of a tensor that trains, is sparse or elsewhere
        raise InputError(f"The array given cannot be read as numbers: {str(error).rstrip('.')}.") from error


def _open(source: AudioSource) -> tuple[str, str | io.BytesIO]:
    """Return what messages call `source`, and what the decoder is to open."""
    if isinstance(source, str | os.PathLike):
        if not os.fspath(source):
            raise InputError("The path of the audio file is empty.")
        return f"'{os.fspath(source)}'", _open_path(Path(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return "the bytes given", io.BytesIO(source)
    if not callable(getattr(source, "read", None)):
        raise InputError(
            f"Audio cannot be read from a {type(source).__name__}. Pass the path of a file, its bytes, a "
            "binary file object, or a numpy array of samples."
        )
    content = source.read()  # type: ignore[union-attr]
    if isinstance(content, str):
        raise InputError("The audio file object is open in text mode. Open it with mode 'rb'.")
    return f"the file object {getattr(source, 'name', '')!r}".removesuffix(" ''"), io.BytesIO(content)


def _open_path(path: Path) -> str | io.BytesIO:
    try:
        if path.is_dir():
            raise InputError(f"'{path}' is a directory. Pass the path of one audio file.")
        if path.is_char_device() or path.is_block_device():  # it may have no end
            raise InputError(f"'{path}' is a device. Pass the path of one audio file.")
        with path.open("rb") as file:
            # A pipe cannot seek, and decoders do.
            return str(path) if path.is_file() else io.BytesIO(file.read())
    except FileNotFoundError:
        raise InputError(
            f"There is no file '{path}'. Check the path; the working directory is '{Path.cwd()}'."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        name = str(path).replace("\0", "?")
        shown = name if len(name) <= 200 else f"{name[:197]}..."
        raise InputError(
            f"The audio file '{shown}' cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error


def _decode(encoded: str | io.BytesIO, name: str) -> tuple[NDArray[np.float32], int]:
    """Return float32 [samples, channels] and the rate that the file states."""
    soundfile = need("soundfile", extra="audio", purpose="read audio files")
    size = Path(encoded).stat().st_size if isinstance(encoded, str) else len(encoded.getbuffer())
    if size == 0:
        raise InputError(f"There is no audio in {name}: it is empty (0 bytes).")
    if _is_text(encoded):  # the decoder would look for mp3 frames in it, and report each failure
        raise InputError(
            f"No audio could be decoded from {name} ({size} bytes): it holds text. Expected a wav, flac, mp3 or ogg "
            "file."
        )
    try:
        samples, rate = soundfile.read(_native(encoded), dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, TypeError) as error:  # TypeError: it takes *.raw for headerless
        raise InputError(
            f"No audio could be decoded from {name} ({size} bytes): {_reason(error)}. Expected a wav, flac, "
            "mp3 or ogg file; convert other formats first, for example with ffmpeg."
        ) from error
    if len(samples) == 0:
        raise InputError(f"There is no audio in {name}: its header is valid and it holds no samples.")
    return samples, int(rate)


def _native(encoded: str | io.BytesIO) -> str | bytes | io.BytesIO:
    """A name as the system has it: soundfile would encode text more strictly than the system wrote it."""
    return os.fsencode(encoded) if isinstance(encoded, str) and os.name == "posix" else encoded


def _is_text(encoded: str | io.BytesIO) -> bool:
    if isinstance(encoded, str):
        with Path(encoded).open("rb") as file:
            start = file.read(512)
    else:
        start = bytes(encoded.getbuffer()[:512])
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return all(c.isprintable() or c.isspace() for c in text)


def _reason(error: Exception) -> str:
    text = str(getattr(error, "error_string", "") or error).strip().rstrip(".")
    return text[:1].lower() + text[1:]
