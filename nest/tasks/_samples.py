"""Turn an array of audio samples into one finite float32 channel in [-1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError

FULL_SCALE = {"int16": 2.0**15, "int32": 2.0**31, "float32": 1.0, "float64": 1.0}
MAX_CHANNELS = 32

# A mean with less than a tenth of the energy that independent channels would leave is a cancelled one.
CANCELLED = 0.1


def mono(array: NDArray[Any], name: str = "the array") -> NDArray[np.float32]:
    """Return the samples of `array` as one channel.

    Channels are mixed by their mean. Where the mean cancels, because one channel is the other's opposite,
    the channel with the most energy is returned in its place.

    Args:
        array: int16, int32, float32 or float64, of shape [samples], [channels, samples] or
            [samples, channels]. Of two axes the shorter one is the channels; a tie is [samples, channels].
            Integers are divided by their full scale.
        name: what messages call the array.

    Returns:
        float32 [samples].

    Raises:
        InputError: see `as_frames`.
    """
    return mix(as_frames(array, name))


def as_frames(array: NDArray[Any], name: str = "the array") -> NDArray[np.float32]:
    """Return the samples of `array`, as `mono` takes it, as float32 [samples, channels].

    Raises:
        InputError: another dtype or rank, more than 32 channels, no samples, or samples that are NaN, infinite or too
            large.
    """
    if array.dtype.name not in FULL_SCALE:
        raise InputError(
            f"The samples of {name} have dtype {array.dtype}; expected one of {', '.join(FULL_SCALE)}. "
            "Convert them first, for example with .astype('float32'), where floats are in [-1, 1]."
        )
    frames = _by_channel(array, name).astype(np.float32) if array.dtype.kind == "i" else _floats(array, name)
    if array.dtype.kind == "i":
        frames /= np.float32(FULL_SCALE[array.dtype.name])
    return frames


def mix(frames: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the channels of `frames` [samples, channels], or the loudest one if it cancels."""
    channels = frames.shape[1]
    if channels == 1:
        return np.ascontiguousarray(frames[:, 0])
    mean: NDArray[np.float32] = frames.mean(axis=1, dtype=np.float32)
    energies = [_energy(frames[:, channel]) for channel in range(channels)]
    if _energy(mean) < CANCELLED * sum(energies) / channels**2:
        return np.ascontiguousarray(frames[:, int(np.argmax(energies))])
    return mean


def _energy(channel: NDArray[np.float32]) -> float:
    return float(np.einsum("n,n->", channel, channel, dtype=np.float64))


def _floats(array: NDArray[Any], name: str) -> NDArray[np.float32]:
    frames = _by_channel(array, name)
    refuse_infinite(frames, name)
    return frames.astype(np.float32) if frames.dtype.itemsize == 4 else narrowed(frames, name)


def narrowed(frames: NDArray[Any], name: str, first: int = 0) -> NDArray[np.float32]:
    """Return finite float64 `frames` [samples, channels], which begin at index `first`, as float32.

    Raises:
        InputError: some are larger than a float32 can be.
    """
    with np.errstate(over="ignore"):
        narrow: NDArray[np.float32] = frames.astype(np.float32)
    fits = np.asarray(np.isfinite(narrow).all(axis=1))
    if not fits.all():
        raise InputError(
            f"The samples of {name} are too large: {int((~fits).sum())} of {len(fits)} are beyond 3.4e38, the "
            f"largest float32, the first at index {first + int(np.argmin(fits))}. Scale them to be from -1 to 1."
        )
    return narrow


def refuse_infinite(frames: NDArray[Any], name: str, first: int = 0) -> None:
    """Raise InputError if `frames` [samples, channels], which begin at index `first`, are not all finite."""
    finite = np.asarray(np.isfinite(frames).all(axis=1))
    if not finite.all():
        raise InputError(
            f"The samples of {name} are not all finite: {int((~finite).sum())} of {len(finite)} are NaN or "
            f"infinite, the first at index {first + int(np.argmin(finite))}. Repair the recording, or replace them "
            "by zeros with numpy.nan_to_num."
        )


def _by_channel(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a view of shape [samples, channels]."""
    if array.ndim not in (1, 2):
        raise InputError(
            f"The samples of {name} have shape {array.shape}, of rank {array.ndim}; expected [samples], "
            "[channels, samples] or [samples, channels]. Pass the recordings of a batch one at a time."
        )
    if array.size == 0:
        raise InputError(f"There are no samples in {name} (shape {array.shape}): nothing to work on.")
    frames = array[:, None] if array.ndim == 1 else array
    if frames.shape[0] < frames.shape[1]:
        frames = frames.T
    if frames.shape[1] > MAX_CHANNELS:
        raise InputError(
            f"The samples of {name} have shape {array.shape}, so at least {frames.shape[1]} channels; at "
            f"most {MAX_CHANNELS} are expected. Pass the audio itself, not a spectrogram of it."
        )
    return frames
