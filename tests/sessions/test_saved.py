"""Sessions in files: on every backend, from one backend to another, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError, WeightsError

from ..speech import SMALL, heard, model_on, tokens_of, weights


def steps(session: Any) -> Any:
    return session.numpy(session.step([[3], [4]], [5, 5]))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A session of two rows and 20 slots after five tokens, on torch."""
    session = heard(model_on("torch"), 2, Capacity=20)
    session.prefill(tokens_of(2, 5))
    session.save(tmp_path / "session.safetensors")
    return tmp_path / "session.safetensors"


def test_a_restored_session_goes_on(model: Any, tmp_path: Path) -> None:
    session = heard(model, 2)
    session.prefill(tokens_of(2, 5))
    session.save(tmp_path / "s.safetensors")
    states, want = session.state_dict(), steps(session)
    other = model.new_session(Batch=2)
    other.restore(str(tmp_path / "s.safetensors"))
    for path, state in other.state_dict().items():
        np.testing.assert_array_equal(state, states[path])
    # numpy's products of equal numbers differ in their last bits by where these lie in memory.
    np.testing.assert_allclose(steps(other), want, rtol=0, atol=1e-5)
    assert [f.name for f in tmp_path.iterdir()] == ["s.safetensors"]


def test_a_session_moves_to_another_backend(model: Any, saved: Path) -> None:
    whole = heard(model_on("torch"), 2, Capacity=20)
    whole.prefill(tokens_of(2, 5))
    session = model.new_session(Batch=2, Capacity=20)
    session.restore(saved)
    np.testing.assert_allclose(steps(session), steps(whole), atol=1e-4)


def test_the_file_is_safetensors_and_says_whose_it_is(saved: Path) -> None:
    from nest.ir.printer import digest

    raw = saved.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header.pop("__metadata__") == {
        "form": "nest.session.1",
        "name": "whisper-tiny",
        "program": digest(model_on("torch").program),
        "symbols": "Batch=2, Capacity=20",
    }
    assert header["decoder_layers.0.self_k"]["shape"] == [2, 3, 20, 4]
    safetensors = pytest.importorskip("safetensors.numpy")
    assert set(safetensors.load_file(saved)) == set(header)


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_half_precision_is_stored_as_it_is(backend: str, tmp_path: Path) -> None:
    model = nest.load("whisper-tiny", backend=backend, weights=weights(), dtype="bf16", **SMALL)
    session = heard(model, 2)
    session.prefill(tokens_of(2, 5))
    session.save(tmp_path / "s")
    other = model.new_session(Batch=2)
    other.restore(tmp_path / "s")
    assert {view.dtype for view in nest.weights.open_checkpoint(tmp_path / "s").values()} == {"bf16"}
    for path, state in session.state_dict().items():
        assert state.dtype == np.float32
        np.testing.assert_array_equal(other.state_dict()[path], state)
    np.testing.assert_array_equal(steps(other), steps(session))


def test_another_program_is_refused(saved: Path) -> None:
    sizes = SMALL | {"Vocab": 18}
    session = nest.load("whisper-tiny", backend="reference", weights=None, **sizes).new_session(
        Batch=2, Capacity=20
    )
    with pytest.raises(
        CallError,
        match="was saved from a session of another program, 'whisper-tiny': expected 'whisper-tiny' with the",
    ):
        session.restore(saved)


@pytest.mark.parametrize("symbols", [{"Batch": 1, "Capacity": 20}, {"Batch": 2}])
def test_another_shape_is_refused(model: Any, saved: Path, symbols: dict[str, int]) -> None:
    session = model.new_session(**symbols)
    with pytest.raises(
        CallError,
        match=r"a session with Batch=2, Capacity=20, and .*: take model.new_session\(Batch=2, Capacity=20",
    ):
        session.restore(saved)


def test_other_files_are_refused(saved: Path, tmp_path: Path) -> None:
    session = model_on("reference").new_session(Batch=2, Capacity=20)
    raw = saved.read_bytes()
    (tmp_path / "cut").write_bytes(raw[:-10])
    with pytest.raises(WeightsError, match="cut is truncated"):
        session.restore(tmp_path / "cut")
    with pytest.raises(WeightsError, match="nothing cannot be read: No such file"):
        session.restore(tmp_path / "nothing")
    for metadata in (b"{}", b'{"form":"pt"}'):
        header = b'{"__metadata__":' + metadata + b',"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
        (tmp_path / "other").write_bytes(len(header).to_bytes(8, "little") + header + b"0")
        with pytest.raises(WeightsError, match="other is no saved session: its metadata has form"):
            session.restore(tmp_path / "other")


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = model_on("reference").new_session(Batch=2, Capacity=20)
    before = saved.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        session.save(saved)
    assert saved.read_bytes() == before
    assert [f.name for f in saved.parent.iterdir()] == [saved.name]
