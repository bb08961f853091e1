"""The log-mel spectrogram of Whisper, equal to the reference feature extractor's.

The spectrum is taken in float64: a quiet band beside a loud one is 80 dB down, and the logarithm would show
the rounding of a float32 transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.errors import InputError

__all__ = ["MelSettings", "log_mel", "mel_filters"]

FLOOR = 1e-10
RANGE = 8.0  # in powers of ten below the loudest bin


@dataclass(frozen=True)
class MelSettings:
    """How a model's log-mel spectrogram is computed. Times are in samples except `window_seconds`."""

    bins: int = 80
    rate: int = 16000
    n_fft: int = 400
    hop: int = 160
    window_seconds: float = 30.0

    @property
    def samples(self) -> int:
        """Samples in one window."""
        return round(self.rate * self.window_seconds)

    @property
    def frames(self) -> int:
        """Spectrogram frames in one window."""
        return self.samples // self.hop


@timed("mel")
def log_mel(audio: NDArray[np.float32], settings: MelSettings | None = None) -> NDArray[np.float32]:
    """Return the log-mel spectrogram of `audio`, padded with zeros to one window.

    Frames are centred every `hop` samples, their border reflected, under a periodic Hann window; the mel
    power becomes x = max(log10(max(power, 1e-10)), its maximum - 8), and that (x + 4) / 4.

    Args:
        audio: float32 [samples], at most `settings.samples`.
        settings: those of Whisper with 80 bins if left out.

    Returns:
        float32 [1, bins, frames].

    Raises:
        InputError: `audio` is not of rank 1 or longer than the window.

    Source: https://arxiv.org/abs/2212.04356, section 2.2.
    """
    settings = settings or MelSettings()
    if audio.ndim != 1 or len(audio) > settings.samples:
        raise InputError(
            f"The log-mel spectrogram takes one channel of at most {settings.samples} samples "
            f"({settings.window_seconds:g} s at {settings.rate} a second); shape {audio.shape} came."
        )
    power = _power(audio, settings)
    levels = np.log10(np.maximum(power @ mel_filters(settings), FLOOR))
    # Frames beyond the audio are exact zeros, so exactly at the floor: one constant, not computed.
    silence = np.log10(FLOOR)
    lowest = max(levels.max(initial=silence) - RANGE, silence)
    result = np.full((1, settings.bins, settings.frames), (lowest + 4.0) / 4.0, dtype=np.float32)
    result[0, :, : len(levels)] = ((np.maximum(levels, lowest) + 4.0) / 4.0).T
    return result


def _power(audio: NDArray[np.float32], settings: MelSettings) -> NDArray[np.float64]:
    """Return the power spectrum [frames that touch the audio, n_fft // 2 + 1]."""
    border = settings.n_fft // 2
    window = np.zeros(settings.samples)
    window[: len(audio)] = audio
    frames = min(settings.frames, -(-(len(audio) + border) // settings.hop))
    strided = np.lib.stride_tricks.sliding_window_view(np.pad(window, border, "reflect"), settings.n_fft)
    spectrum = np.fft.rfft(strided[:: settings.hop][:frames] * _hann(settings.n_fft), axis=-1)
    return spectrum.real**2 + spectrum.imag**2


@cache
def _hann(length: int) -> NDArray[np.float64]:
    """Return the periodic Hann window [length]."""
    window: NDArray[np.float64] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    window.flags.writeable = False
    return window


@cache
def mel_filters(settings: MelSettings) -> NDArray[np.float64]:
    """Return Slaney's triangular mel filters, each of unit area, from 0 Hz to half the rate.

    Returns:
        float64 [n_fft // 2 + 1, bins], read-only.

    Source: Malcolm Slaney, Auditory Toolbox, technical report 1998-010.
    """
    frequencies = np.linspace(0, settings.rate / 2, settings.n_fft // 2 + 1)[:, None]
    edges = _hertz(np.linspace(0, _mel(settings.rate / 2), settings.bins + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies - low) / (centre - low)
    falling = (high - frequencies) / (high - centre)
    filters: NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling)) * (2 / (high - low))
    filters.flags.writeable = False
    return filters


# Slaney's scale: linear up to 1000 Hz, which is mel 15; from there 27 steps to a factor of 6.4.
_KNEE_HERTZ, _KNEE_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27.0


def _mel(hertz: float) -> float:
    if hertz <= _KNEE_HERTZ:
        return hertz * _KNEE_MEL / _KNEE_HERTZ
    return float(_KNEE_MEL + np.log(hertz / _KNEE_HERTZ) / _LOG_STEP)


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    linear = mels * (_KNEE_HERTZ / _KNEE_MEL)
    return np.where(mels <= _KNEE_MEL, linear, _KNEE_HERTZ * np.exp(_LOG_STEP * (mels - _KNEE_MEL)))
