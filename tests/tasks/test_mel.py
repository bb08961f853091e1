from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.errors import InputError
from nest.tasks.mel import MelSettings, log_mel, mel_filters

SHORT = MelSettings(window_seconds=0.5)


def noise(samples: int, seed: int = 0, scale: float = 0.1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(samples).astype(np.float32) * np.float32(scale)


def by_definition(audio: np.ndarray, settings: MelSettings) -> np.ndarray:
    """Every frame of the padded window by the sum that defines its transform, in float64."""
    half = settings.n_fft // 2
    window = np.pad(np.pad(audio.astype(np.float64), (0, settings.samples - len(audio))), half, "reflect")
    n = np.arange(settings.n_fft)
    hann = np.sin(np.pi * n / settings.n_fft) ** 2
    waves = np.exp(-2j * np.pi * np.outer(n, np.arange(half + 1)) / settings.n_fft)
    frames = [window[t * settings.hop :][: settings.n_fft] * hann for t in range(settings.frames)]
    levels = np.log10(np.maximum(np.abs(np.array(frames) @ waves) ** 2 @ mel_filters(settings), 1e-10))
    return ((np.maximum(levels, levels.max() - 8) + 4) / 4).T


def test_the_golden_spectrogram(golden: dict[str, np.ndarray]) -> None:
    result = log_mel(golden["audio"])
    assert result.dtype == np.float32
    assert result.shape == (1, 80, 3000)
    np.testing.assert_allclose(result[0], golden["mel"], rtol=0, atol=2e-5)


@given(st.integers(1, SHORT.samples), st.integers(0, 99), st.sampled_from([1e-6, 1e-2, 1.0]))
@settings(max_examples=30, deadline=None)
def test_any_length_is_the_definition(samples: int, seed: int, scale: float) -> None:
    audio = noise(samples, seed, scale)
    np.testing.assert_allclose(log_mel(audio, SHORT)[0], by_definition(audio, SHORT), rtol=0, atol=1e-6)


@pytest.mark.parametrize("samples", [1, 2, 199, 200, 201, 7799, 7800, 7801, 7999, 8000])
def test_lengths_around_the_borders(samples: int) -> None:
    audio = noise(samples, samples)
    np.testing.assert_allclose(log_mel(audio, SHORT)[0], by_definition(audio, SHORT), rtol=0, atol=1e-6)


def test_padding_by_hand_changes_nothing() -> None:
    audio = noise(4321)
    padded = np.pad(audio, (0, SHORT.samples - len(audio)))
    np.testing.assert_array_equal(log_mel(audio, SHORT), log_mel(padded, SHORT))


def test_silence_is_one_constant() -> None:
    np.testing.assert_array_equal(log_mel(np.zeros(1600, dtype=np.float32)), np.float32(-1.5))


def test_filters_are_triangles_of_unit_area() -> None:
    for bins in (80, 128):
        filters = mel_filters(MelSettings(bins=bins))
        assert filters.shape == (201, bins)
        assert (filters >= 0).all()
        peaks = filters.argmax(axis=0)
        assert (np.diff(peaks) >= 0).all()
        # Wide filters are sampled often enough for their sum to show the area: 40 Hz a step.
        np.testing.assert_allclose(filters[:, -10:].sum(axis=0) * 40, 1, atol=0.02)


def test_the_scale_is_linear_below_1000_hertz_and_logarithmic_above() -> None:
    # 45.245640471924965 mels reach 8000 Hz: 15 below the knee, and 27 log(8) / log(6.4) above.
    spacing = (15 + 27 * np.log(8) / np.log(6.4)) / 81
    centres = spacing * np.arange(1, 81)
    hertz = np.where(centres < 15, centres * 200 / 3, 1000 * 6.4 ** ((centres - 15) / 27))
    peaks = mel_filters(MelSettings()).argmax(axis=0) * 40
    assert (np.abs(peaks - hertz) <= 40).all()


@pytest.mark.parametrize("shape", [(8001,), (1, 4000)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        InputError, match=r"one channel of at most 8000 samples \(0.5 s at 16000 a second\); shape"
    ):
        log_mel(np.zeros(shape, dtype=np.float32), SHORT)
