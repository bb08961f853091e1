"""The plans of each backend: the fast one agrees with the exact one, and only the exact one has definition paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError

BACKENDS = ["torch", "jax", "nnx", "onnx"]
SIZES: dict[str, Any] = {
    # More than 64 encoder states, and a vocabulary much larger than a row: what the fast plan has kernels for.
    "Mels": 5, "Frames": 160, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 2, "Vocab": 211,
    "MaxTokens": 24,
}  # fmt: skip
CLOSE = 2e-5
"""Of the largest value: the bound of every row of the parity matrix with random weights."""


@pytest.fixture(scope="module", params=BACKENDS)
def model(request: pytest.FixtureRequest) -> Any:
    return nest.load("whisper-tiny", backend=request.param, weights=None, seed=5, **SIZES)


@pytest.fixture(scope="module")
def mel() -> Any:
    return np.random.default_rng(0).standard_normal((2, 5, 160)).astype(np.float32)


PROMPT = np.array([[3, 200, 1], [7, 2, 0]], np.int32)


def heard(model: Any, mel: Any, plan: str) -> tuple[Any, dict[str, Any]]:
    """A session after a prompt and a step, and what they gave."""
    session = model.new_session(Batch=2, plan=plan)
    found = {
        "encode": session.encode(mel),
        "decode": session.decode(PROMPT, mel.reshape(2, -1)[:, :108].reshape(2, 9, 12)),
        "listen": session.listen(mel),
        "prefill": session.prefill(PROMPT, np.array([3, 2], np.int32)),
        "step": session.step(np.array([[9], [210]], np.int32), np.array([3, 2], np.int32)),
        "align": session.align(PROMPT),
    }
    return session, {name: session.numpy(value) for name, value in found.items()}


@pytest.fixture(scope="module")
def both(model: Any, mel: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    return {plan: heard(model, mel, plan) for plan in ("exact", "fast")}


def test_fast_gives_what_exact_gives(both: Any) -> None:
    (first, exact), (second, fast) = both["exact"], both["fast"]
    for name, value in exact.items():
        assert np.abs(fast[name] - value).max() <= CLOSE * np.abs(value).max(), name
        np.testing.assert_array_equal(fast[name].argmax(-1), value.argmax(-1), err_msg=name)
    states = second.state_dict()
    for path, state in first.state_dict().items():
        assert np.abs(states[path] - state).max() <= CLOSE * max(1.0, np.abs(state).max()), path


def test_whole_decodes_give_the_same_tokens(model: Any, mel: Any) -> None:
    out = np.zeros((2, 12), np.int32)
    found = []
    for plan in ("exact", "fast"):
        session = model.new_session(Batch=2, plan=plan)
        ids, counts, _ = session.hear(mel, PROMPT, out, np.int32(-1))
        found.append((session.numpy(ids).tolist(), session.numpy(counts).tolist()))
    assert found[0] == found[1]
    assert len(set(found[0][0][0])) > 1


def test_a_session_of_one_plan_goes_on_by_the_other(model: Any, both: Any, tmp_path: Any) -> None:
    session = both["fast"][0].fork()
    session.save(tmp_path / "session.safetensors")
    other = model.new_session(Batch=2)
    other.restore(tmp_path / "session.safetensors")
    token, pos = np.array([[4], [5]], np.int32), np.array([4, 3], np.int32)
    expected, got = session.numpy(session.step(token, pos)), other.numpy(other.step(token, pos))
    assert np.abs(got - expected).max() <= CLOSE * np.abs(expected).max()


def test_a_fork_keeps_its_plan(both: Any) -> None:
    session = both["fast"][0].fork()
    fork = session.fork()
    token, pos = np.array([[4], [5]], np.int32), np.array([4, 3], np.int32)
    np.testing.assert_array_equal(fork.numpy(fork.step(token, pos)), session.numpy(session.step(token, pos)))


def test_a_plan_that_there_is_not(model: Any) -> None:
    with pytest.raises(CallError, match=r"There is no plan 'fastest'; nest has exact, fast\."):
        model.new_session(plan="fastest")


@pytest.mark.parametrize("backend", ["torch", "jax", "nnx"])
def test_fast_sessions_see_weights_that_changed(backend: str, mel: Any) -> None:
    model = nest.load("whisper-tiny", backend=backend, weights=None, seed=5, **SIZES)
    _, before = heard(model, mel, "fast")
    path = "decoder_layers.1.self_attn.v_proj.bias"
    if backend == "torch":
        import torch

        with torch.no_grad():
            model.get_parameter(path).add_(1.0)
    elif backend == "jax":
        model.params[path] = model.params[path] + 1.0
    else:
        bias = model.decoder_layers[1].self_attn.v_proj.bias
        bias.set_value(bias[...] + 1.0)
    (_, exact), (_, fast) = heard(model, mel, "exact"), heard(model, mel, "fast")
    assert np.abs(fast["step"] - exact["step"]).max() <= CLOSE * np.abs(exact["step"]).max()
    assert np.abs(fast["step"] - before["step"]).max() > 1e-3


def test_the_modules_of_torch_share_what_is_not_packed() -> None:
    model = nest.load("whisper-tiny", backend="torch", weights=None, **SIZES)
    fast, again = model.new_session(plan="fast").model, model.new_session(plan="fast").model
    assert fast is again
    assert model.conv1_weight.data_ptr() == fast.conv1_weight.data_ptr()
    assert "encoder_layers.1.self_attn.q_proj.weight" in model.state_dict()
    assert fast.encoder_layers[1].self_attn_q_k_v_proj_weight.shape == (36, 12)


def test_graphs_of_the_fast_plan_use_the_runtimes_own_attention() -> None:
    model = nest.load("whisper-tiny", backend="onnx", weights=None, **SIZES)

    def kinds(plan: str) -> list[str]:
        graph = model.new_session(plan=plan).runtime.lowered("listen").model.graph
        return [node.op_type for node in graph if node.domain == "com.microsoft"]

    assert kinds("exact") == []
    assert kinds("fast") == ["MultiHeadAttention"] * 2


def test_the_fast_plan_of_onnx_stores_no_head_twice() -> None:
    model = nest.load("whisper-tiny", backend="onnx", weights=None, **SIZES)
    graph = model.new_session(plan="fast").runtime.lowered("step").model.graph
    shapes = [tuple(v.shape.numpy()) for v in graph.initializers.values() if 211 in v.shape.numpy()]
    assert shapes == [(12, 211)]


def test_what_is_packed_lies_where_the_model_does() -> None:
    import torch

    model = nest.load("whisper-tiny", backend="torch", weights=None, device="meta", **SIZES)
    packed = model.new_session(plan="fast").model
    assert {p.device for p in packed.parameters()} == {torch.device("meta")}
