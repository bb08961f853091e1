from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.errors import InputError
from nest.tasks._samples import mix, mono


def tone(samples: int = 400, step: float = 0.1) -> np.ndarray:
    return np.sin(np.arange(samples) * step).astype(np.float32) * 0.5


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
def test_every_dtype_gives_the_same_samples(dtype: str) -> None:
    scale = 2.0 ** {"int16": 15, "int32": 31}.get(dtype, 0)
    exact = np.array([-1.0, -0.5, 0.0, 0.25, 0.75])
    result = mono((exact * scale).astype(dtype))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, exact)


def test_big_endian_integers_are_read() -> None:
    np.testing.assert_array_equal(mono(np.array([-32768, 16384], dtype=">i2")), [-1, 0.5])


@pytest.mark.parametrize("layout", [np.stack, np.column_stack])
def test_either_order_of_axes_is_mixed_by_the_mean(layout) -> None:
    left, right = tone(step=0.1), tone(step=0.23)
    np.testing.assert_allclose(mono(layout([left, right])), (left + right) / 2, atol=1e-7)


def test_opposite_channels_do_not_cancel() -> None:
    np.testing.assert_array_equal(mono(np.stack([tone(), -tone()])), tone())


def test_the_channel_with_more_energy_is_kept_where_channels_nearly_cancel() -> None:
    loud = -1.1 * tone()
    np.testing.assert_array_equal(mono(np.stack([tone(), loud])), loud)


def test_one_silent_channel_leaves_half_of_the_other() -> None:
    np.testing.assert_allclose(mono(np.stack([tone(), 0 * tone()])), tone() / 2)


def test_one_speaking_channel_of_many_is_still_the_mean() -> None:
    frames = np.zeros((400, 8), dtype=np.float32)
    frames[:, 5] = tone()
    np.testing.assert_allclose(mix(frames), tone() / 8)


def test_silence_stays_silence() -> None:
    np.testing.assert_array_equal(mono(np.zeros((2, 30), dtype=np.int16)), np.zeros(30))


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=50), st.integers(1, 4))
def test_equal_channels_give_that_channel(values: list[float], channels: int) -> None:
    one = np.array(values, dtype=np.float32)
    np.testing.assert_allclose(mix(np.stack([one] * channels, axis=1)), one, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite_are_refused_with_their_place(bad: float) -> None:
    samples = np.zeros((5, 2))
    samples[3, 1] = bad
    with pytest.raises(
        InputError, match=r"not all finite: 1 of 5 are NaN or infinite, the first at index 3\."
    ):
        mono(samples)


def test_samples_beyond_the_range_of_float32_are_said_to_be_too_large() -> None:
    samples = np.zeros((5, 2))
    samples[3, 1] = -1e300
    with pytest.raises(
        InputError, match=r"are too large: 1 of 5 are beyond 3\.4e38.* first at index 3\."
    ) as said:
        mono(samples)
    assert "NaN" not in str(said.value)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "complex64", "bool"])
def test_another_dtype_is_refused(dtype: str) -> None:
    with pytest.raises(
        InputError, match=rf"have dtype {dtype}; expected one of int16, int32, float32, float64"
    ):
        mono(np.zeros(10, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (2, 3, 100)])
def test_another_rank_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=rf"of rank {len(shape)}; expected \[samples\]"):
        mono(np.zeros(shape, dtype=np.float32))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2)])
def test_no_samples_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="There are no samples in the array"):
        mono(np.zeros(shape, dtype=np.float32))


def test_a_spectrogram_is_not_taken_for_channels() -> None:
    with pytest.raises(
        InputError, match=r"shape \(80, 3000\), so at least 80 channels; at most 32 are expected"
    ):
        mono(np.zeros((80, 3000), dtype=np.float32))
