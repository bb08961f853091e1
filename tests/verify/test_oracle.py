"""Results are kept by content: found again, never for anything else, and states are made up for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.layers import elaborate
from nest.verify.oracle import Oracle
from nest.verify.weights import lively_parameters

from .models import GPT, Gpt

TOKENS, LENGTHS = np.array([[3, 1, 4]], np.int32), np.array([3], np.int32)
TOKEN, POS = np.array([[5]], np.int32), np.array([3], np.int32)


@pytest.fixture(scope="module")
def params() -> dict[str, Any]:
    return lively_parameters(elaborate(Gpt, **GPT))


def oracle(params: dict[str, Any], folder: Path) -> Oracle:
    return Oracle(elaborate(Gpt, **GPT), params, folder=folder)


def decoded(one: Oracle) -> list[np.ndarray[Any, Any]]:
    session = one.new_session(Batch=1)
    return [session.call("prefill", [TOKENS, LENGTHS])[0], session.call("step", [TOKEN, POS])[0]]


def test_what_was_computed_is_not_computed_again(
    params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = decoded(oracle(params, tmp_path))
    assert first[0].dtype == np.float64
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr("nest.verify.oracle.build", lambda *_, **__: pytest.fail("it was computed"))
    for a, b in zip(first, decoded(oracle(params, tmp_path)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_other_weights_and_inputs_are_other_results(params: dict[str, Any], tmp_path: Path) -> None:
    decoded(oracle(params, tmp_path))
    changed = {**params, "wte": params["wte"] * 2}
    decoded(oracle(changed, tmp_path))
    assert len(list(tmp_path.iterdir())) == 4
    session = oracle(params, tmp_path).new_session(Batch=1)
    session.call("prefill", [TOKENS[:, :2], LENGTHS - 1])
    session.call("step", [TOKEN, POS])  # the same call after another prompt
    assert len(list(tmp_path.iterdir())) == 6


def test_states_are_made_up_for(params: dict[str, Any], tmp_path: Path) -> None:
    session = oracle(params, tmp_path).new_session(Batch=1)
    session.call("prefill", [TOKENS, LENGTHS])
    _, expected = decoded(Oracle(elaborate(Gpt, **GPT), params, keep=False))
    # The prompt is found, and the step is new.
    np.testing.assert_array_equal(decoded(oracle(params, tmp_path))[1], expected)


def test_a_damaged_file_is_computed_again(params: dict[str, Any], tmp_path: Path) -> None:
    first = decoded(oracle(params, tmp_path))
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    again = decoded(oracle(params, tmp_path))
    np.testing.assert_array_equal(first[1], again[1])


def test_a_folder_that_cannot_be_written_costs_time_alone(params: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert decoded(oracle(params, tmp_path / "file"))[0].shape == (1, GPT["Vocab"])


def test_the_oldest_results_go_first(
    params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = oracle(params, tmp_path)
    decoded(one)
    sizes = [f.stat().st_size for f in tmp_path.iterdir()]
    one.prune()
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr("nest.verify.oracle._KEPT_BYTES", max(sizes))
    one.prune()
    assert len(list(tmp_path.iterdir())) == 1
