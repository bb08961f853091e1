"""Whisper at a small size with random weights: every entry, cached and not, rows of their own lengths, many callers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nest.registry import find

# No two sizes are equal, so that no axis stands for another.
SIZES = {
    "Mels": 10, "Frames": 26, "D": 24, "Heads": 3, "Inner": 40, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 50,
    "MaxTokens": 17, "alignment_heads": ((0, 1), (2, 0), (2, 2)),
}  # fmt: skip
PROMPT = np.array([[3, 7, 11, 2, 30]], np.int32)


@pytest.fixture(scope="module", params=["none", "all"])
def models(request: pytest.FixtureRequest, pair: Callable[..., Any]) -> Any:
    root = find("whisper-tiny").definition()
    return pair(root, session_options={"graph_optimization_level": request.param}, **SIZES)


@pytest.fixture
def mel() -> Any:
    return np.random.default_rng(0).standard_normal((3, 10, 26)).astype("f4")


def near(got: Any, want: Any, limit: float = 2e-5) -> None:
    """max|Δ| / max|want| at or below a limit."""
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= limit * np.abs(want).max()


def test_every_entry_agrees_with_the_oracle(models: Any, mel: Any) -> None:
    model, oracle = models
    tokens = np.repeat(PROMPT, 3, 0)
    audio = oracle.encode(mel)
    near(model.encode(mel), audio)
    near(model.decode(tokens, audio), oracle.decode(tokens, audio))
    near(model.decode(tokens[:, :2], audio[:, :5]), oracle.decode(tokens[:, :2], audio[:, :5]))
    session, exact = (m.new_session(Batch=3) for m in models)
    near(session.listen(mel), exact.listen(mel))
    near(session.align(tokens), exact.align(tokens))
    near(session.prefill(tokens), exact.prefill(tokens))
    for pos in range(5, 9):
        token = np.full((3, 1), pos, np.int32)
        near(session.step(token, pos), exact.step(token, pos))
    for path, state in session.state.items():
        near(state, exact.state[path])


def test_cached_decoding_is_uncached_decoding(models: Any, mel: Any) -> None:
    model, _ = models
    session = model.new_session()
    audio = session.listen(mel[:1])
    whole = model.decode(np.concatenate([PROMPT, [[9, 1, 4]]], axis=1), audio)
    near(session.prefill(PROMPT), whole[:, 4])
    for pos, token in enumerate((9, 1, 4), 5):
        near(session.step([[token]], pos), whole[:, pos])


def test_rows_of_a_batch_are_single_runs_at_their_own_lengths(models: Any, mel: Any) -> None:
    model, _ = models
    lengths = [2, 5, 3]
    batch = model.new_session(Batch=3, Capacity=11)
    batch.listen(mel)
    first = batch.prefill(np.repeat(PROMPT, 3, 0), lengths)
    then = batch.step([[8], [6], [1]], lengths)
    for row, length in enumerate(lengths):
        single = model.new_session(Capacity=9)
        single.listen(mel[row : row + 1])
        near(first[row : row + 1], single.prefill(PROMPT[:, :length]))
        near(then[row : row + 1], single.step([[[8, 6, 1][row]]], length))


def test_results_stay_as_they_were_given(models: Any, mel: Any) -> None:
    model, _ = models
    session = model.new_session()
    session.listen(mel[:1])
    session.prefill(PROMPT)
    given = [session.step([[token]], 5 + token) for token in range(4)]
    kept = [x.copy() for x in given]
    session.listen(mel[1:2])
    session.step([[9]], 3)
    assert all((x == y).all() for x, y in zip(given, kept, strict=True))


def test_sessions_of_many_threads_share_weights_and_nothing_else(models: Any, mel: Any) -> None:
    model, _ = models

    def run(seed: int) -> Any:
        session = model.new_session()
        session.listen(mel[seed % 3 : seed % 3 + 1])
        session.prefill(PROMPT[:, : 2 + seed % 4])
        return [session.step([[seed]], 5 + i) for i in range(4)]

    alone = [run(seed) for seed in range(16)]
    together: list[Any] = [None] * 16
    threads = [threading.Thread(target=lambda i=i: together.__setitem__(i, run(i))) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        assert all((x == y).all() for x, y in zip(one, other, strict=True))


def test_the_checker_accepts_every_graph(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = models
    # The checker looks for external data from the working directory; its locations are from the root.
    monkeypatch.chdir(model.runtime.weights.root)
    for name in model.program.entries:
        onnx.checker.check_model(ir.to_proto(model.graph(name)), full_check=True)


def test_caches_are_written_in_place(models: Any) -> None:
    model, _ = models
    for name in ("listen", "prefill", "step"):
        ports = model.runtime.entry(name).graph.states
        assert ports
        assert all(p.in_place for p in ports if p.output is not None)


def test_names_are_the_definition_s(models: Any) -> None:
    graph = models[0].graph("step").graph
    assert [v.name for v in graph.inputs[:3]] == ["token", "pos", "past.decoder_layers.0.self_k"]
    assert [v.name for v in graph.outputs[:2]] == ["result", "present.decoder_layers.0.self_k"]
    shape = graph.inputs[2].shape
    assert [d if isinstance(d, int) else d.value for d in shape or ()] == ["Batch", 3, "Capacity", 8]
    stored = [n for n, v in graph.initializers.items() if isinstance(v.const_value, ir.ExternalTensor)]
    assert "token_embedding" in stored
    assert not [n for n in stored if n.startswith("encoder") or n.endswith("k_proj.bias")]


def test_tied_weights_are_one_initializer(models: Any) -> None:
    graph = models[0].graph("decode").graph
    uses = {use.node.op_type for use in graph.initializers["token_embedding"].uses()}
    assert uses == {"Gather", "Gemm"}
