"""Loops that go on from a token: run past their end, cut into pieces, and how often the host is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.loops import loops_for
from nest.registry import find

from ..decoder import VOCAB, Decoder, decoder_on
from .test_consultations import Chunked

N = 12
PROMPTS = np.array([[1, 2, 5], [4, 90, 0]], np.int32)
LENGTHS = np.array([3, 2], np.int32)
UNIFORMS = np.random.default_rng(3).random((N, 2), dtype=np.float32)
ENDS = np.array([*range(0, 300, 23), -1], np.int32)
SEEN = np.zeros((2, VOCAB), np.float32)
LOOPS: dict[str, dict[str, Any]] = {
    "proceed": {"out": np.zeros((2, N), np.int32)},
    "proceed_drawn": {"uniforms": UNIFORMS, "seen": SEEN, "penalty": [1.3, 1.0], "floor": [0.1, 0.0]},
    "proceed_of_top": {"uniforms": UNIFORMS, "seen": SEEN, "most": [9, 30], "mass": [1.0, 0.9]},
}


def begun(session: Any) -> tuple[Any, Any, Any]:
    """The first token of each row, its slot, and that no row has ended."""
    first = session.numpy(session.prefill(PROMPTS, LENGTHS)).argmax(-1).astype(np.int32)
    return first, LENGTHS, np.zeros(2, bool)


def said(session: Any, loop: str, at: tuple[Any, Any, Any], count: int, ends: Any) -> list[Any]:
    results = getattr(session, loop)(*at, count=np.int32(count), ends=ends, **LOOPS[loop])
    return [session.numpy(x) for x in results]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("ends", [ENDS, np.array([-1], np.int32)])
def test_running_past_the_end_changes_nothing_even_for_what_goes_on(loop: str, ends: Any) -> None:
    sessions = [decoder_on("torch").new_session(Batch=2, Capacity=2 * N) for _ in range(2)]
    sessions[1].state.runner = Chunked(sessions[1].state)
    at, _ = (begun(session) for session in sessions)
    want, got = (said(session, loop, at, 5, ends) for session in sessions)
    np.testing.assert_array_equal(want, got)
    # From where the first call ended: its overrun wrote slots that are read from here on.
    still = ~np.isin(want[0][:, :5], ends).any(1)
    at = (want[0][:, 4], LENGTHS + 5, ~still)
    want, got = (said(session, loop, at, 6, ends) for session in sessions)
    np.testing.assert_array_equal(want[0][still], got[0][still])
    assert (want[0][~still] == ends[0]).all()


def test_a_call_that_is_cut_in_two_says_the_same() -> None:
    whole, parts = (decoder_on("torch").new_session(Batch=2, Capacity=2 * N) for _ in range(2))
    none = np.array([-1], np.int32)
    at = begun(whole)
    begun(parts)
    want = said(whole, "proceed", at, N, none)[0]
    first = said(parts, "proceed", at, 7, none)[0][:, :7]
    rest = said(parts, "proceed", (first[:, -1], LENGTHS + 7, at[2]), N - 7, none)[0][:, : N - 7]
    np.testing.assert_array_equal(want, np.concatenate([first, rest], axis=1))


def test_on_onnx_a_piece_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime as ort

    session = decoder_on("onnx").new_session(Batch=2, Capacity=2 * N)
    at = begun(session)
    runs: list[str] = []
    original = ort.InferenceSession.run_with_iobinding
    monkeypatch.setattr(
        ort.InferenceSession, "run_with_iobinding", lambda *a, **k: (runs.append("run"), original(*a, **k))[1]
    )
    ids, _ = said(session, "proceed", at, N, np.array([-1], np.int32))
    assert runs == ["run"]
    assert (ids >= 0).all()


def test_models_that_listen_have_none_of_them() -> None:
    speech: Any = find("whisper-tiny").definition()
    assert loops_for(speech).keys() == {
        "greedy",
        "sample",
        "sample_top",
        "hear",
        "greedy_timed",
        "sample_timed",
        "prefill_top",
        "step_top",
        "step_top_timed",
    }
    assert loops_for(Decoder).keys() == {"greedy", "sample", "sample_top", *LOOPS}


@pytest.mark.parametrize("loop", LOOPS)
def test_on_cuda_recorded_calls_say_what_plain_ones_say(loop: str) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    plain = decoder_on("torch").new_session(Batch=2, Capacity=2 * N)
    recorded = decoder_on("torch", device="cuda").new_session(Batch=2, Capacity=2 * N, graphs=True)
    for _ in range(2):
        at = begun(plain)
        assert begun(recorded)[0].tolist() == at[0].tolist()
        for start, count in ((0, 5), (5, 6)):
            want = said(plain, loop, at, count, np.array([-1], np.int32))[0]
            got = said(recorded, loop, at, count, np.array([-1], np.int32))[0]
            assert got.tolist() == want.tolist()
            at = (want[:, count - 1], LENGTHS + start + count, at[2])
