"""Matrices in 8 and 4 bits, and the cache of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import WeightsError
from nest.ir.passes.quantize import QuantizedMatrix, QuantizedProgram
from nest.weights import quantized
from nest.weights.quantized import quantization_cache, quantized_matrix, quantized_parameters

RNG = np.random.default_rng(0)


def restored(parts: dict[str, Any]) -> Any:
    """The matrix that parts stand for."""
    values, scales = parts["values"], parts["scales"]
    if values.ndim == 2:
        return values.T * scales[:, None]
    nibbles = np.stack([values & 15, values >> 4], -1).reshape(*scales.shape, -1).astype(int) - 8
    return (nibbles * scales[..., None]).reshape(len(values), -1)


@pytest.mark.parametrize(("scheme", "steps"), [("int8", 127), ("int4", 8)])
def test_no_weight_is_off_by_more_than_half_a_step(scheme: str, steps: int) -> None:
    weight = (RNG.standard_normal((5, 64)) * np.exp(3 * RNG.standard_normal((5, 1)))).astype(np.float32)
    parts = quantized_matrix(weight, scheme)
    groups = (5, 1, 64) if scheme == "int8" else (5, 2, 32)
    step = np.abs(weight.reshape(groups)).max(2, keepdims=True) / steps
    off = np.abs(restored(parts) - weight).reshape(groups)
    # Of 4 bits, what is as large as the largest and of the other sign is a whole step off.
    assert (off <= step * (0.5001 if scheme == "int8" else 1.0001)).all()
    error = np.linalg.norm(restored(parts) - weight) / np.linalg.norm(weight)
    assert parts["error"] == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("scheme", ["int8", "int4"])
def test_zeros_and_what_is_nearly_zero_stay(scheme: str) -> None:
    weight = np.zeros((2, 32), np.float32)
    weight[1] = 1e-42
    parts = quantized_matrix(weight, scheme)
    assert np.isfinite(restored(parts)).all()
    assert np.abs(restored(parts)).max() <= 1e-41


def made(scheme: str = "int8") -> QuantizedProgram:
    matrices = {"up": QuantizedMatrix("up.weight", "up", scheme)}
    return QuantizedProgram(None, {"norm": "norm"}, matrices)  # type: ignore[arg-type]


def params() -> dict[str, Any]:
    return {
        "up.weight": RNG.standard_normal((32, 64)).astype(np.float32),
        "norm": np.ones(64, np.float32),
    }


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path))


def test_weights_are_quantized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = params()
    first, reports = quantized_parameters(made(), given, 4, "weights")
    assert first.keys() == {"up_values", "up_scales", "norm"}
    assert first["norm"] is given["norm"]

    def refuse(*_: Any) -> Any:
        raise AssertionError("quantized again")

    monkeypatch.setattr(quantized, "quantized_matrix", refuse)
    second, again = quantized_parameters(made(), given, 4, "weights")
    assert again == reports
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array)
    for other in (made("int4"), "other weights"), (made("int4"), "weights"), (made(), None):
        with pytest.raises(AssertionError, match="quantized again"):
            quantized_parameters(other[0], given, 4, other[1])


def test_a_file_that_was_cut_off_is_made_anew() -> None:
    given = params()
    first, _ = quantized_parameters(made(), given, 4, "weights")
    kept = {name: np.array(array) for name, array in first.items()}
    (file,) = quantization_cache().iterdir()
    del first
    file.write_bytes(file.read_bytes()[:-3])
    second, _ = quantized_parameters(made(), given, 4, "weights")
    for name, array in kept.items():
        np.testing.assert_array_equal(second[name], array)


def test_a_cache_that_cannot_be_written_costs_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "file"))
    found, _ = quantized_parameters(made(), params(), 4, "weights")
    assert found["up_values"].dtype == np.int8


def test_weights_that_are_no_numbers_are_refused() -> None:
    given = params()
    given["up.weight"][3, 4] = np.nan
    with pytest.raises(WeightsError, match=r"'up.weight' has weights that are no finite numbers"):
        quantized_parameters(made(), given, 4, None)
