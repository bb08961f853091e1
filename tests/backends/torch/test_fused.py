"""Fused steps without a GPU: what the exact plan gives, by few ops."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import nest
from nest.backends.torch import fused
from nest.backends.torch.module import TorchModel
from nest.ir.plan import plan
from nest.ir.program import Function

WHISPER: dict[str, Any] = {
    "Mels": 5, "Frames": 160, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 2, "Vocab": 211,
    "MaxTokens": 24,
}  # fmt: skip
LLAMA: dict[str, Any] = {"D": 16, "Heads": 4, "KvHeads": 2, "Inner": 24, "Layers": 2, "Vocab": 97}
ENTRIES: dict[str, dict[str, Any]] = {
    "whisper-tiny": WHISPER,
    "qwen2.5-0.5b-instruct": {**LLAMA, "HeadDim": 4},
    "qwen3-0.6b": {**LLAMA, "HeadDim": 4},
    "llama-3.1-8b-instruct": {**LLAMA, "HeadDim": 4},
    "gpt2": {"D": 16, "Heads": 4, "Inner": 24, "Layers": 2, "Vocab": 97, "MaxTokens": 24},
}
CLOSE = 2e-5
"""Of the largest value: the bound of every row of the parity matrix with random weights."""


@pytest.fixture(scope="module", params=ENTRIES)
def model(request: pytest.FixtureRequest) -> Any:
    name = request.param
    return nest.load(name, backend="torch", weights=None, seed=5, dtype="f32", **ENTRIES[name])


@pytest.fixture
def fusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TorchModel, "_changes", lambda self: ("pack", "fuse"))


def ops(function: Function) -> Counter[str]:
    return Counter(n.op for n in function.nodes)


def results(session: Any, whisper: bool) -> dict[str, Any]:
    prompt, out = np.array([[3, 90, 1], [7, 2, 0]], np.int32), np.zeros((2, 6), np.int32)
    found: dict[str, Any] = {}
    if whisper:
        mel = np.random.default_rng(0).standard_normal((2, 5, 160)).astype(np.float32)
        session.listen(mel)
        found["hear"] = session.hear(mel, prompt, out, end=np.int32(5))[0]
    found["prefill"] = session.prefill(prompt, np.array([3, 2], np.int32))
    found["step"] = session.step(np.array([[9], [80]], np.int32), np.array([3, 2], np.int32))
    found["again"] = session.step(np.array([[4], [6]], np.int32), np.array([4, 3], np.int32))
    found["greedy"] = session.greedy(prompt, out, end=np.int32(5), lengths=np.array([3, 2], np.int32))[0]
    return {name: session.numpy(value) for name, value in found.items()}


def test_fused_steps_give_what_the_exact_plan_gives(model: Any, fusing: None) -> None:
    whisper = "hear" in model.program.entries
    exact, fast = (
        results(model.new_session(Batch=2, Capacity=16, plan=p), whisper) for p in ("exact", "fast")
    )
    for name, value in exact.items():
        if value.dtype.kind == "i":
            np.testing.assert_array_equal(fast[name], value, err_msg=name)
        else:
            assert np.abs(fast[name] - value).max() <= CLOSE * np.abs(value).max(), name


def test_steps_and_prompts_are_a_few_ops(model: Any) -> None:
    layers = [
        f
        for f in plan(model.program, "fast", changes=("pack", "fuse")).program.functions()
        if f.name in ("step", "prefill") and f.writes
    ]
    assert layers
    for function in layers:
        found = ops(function)
        if "call" in found:
            assert "layer_norm" not in found
            assert "rms_norm" not in found
            continue
        heard = 1 if "read" in found else 0
        assert found["attend_step"] == 1, (function.block.name, found)
        assert found["attend_heard"] == heard
        assert found["norm_linear"] == 2 + heard
        assert found["linear_add"] == 2 + heard
        assert not found.keys() & {
            "layer_norm",
            "rms_norm",
            "linear",
            "attention",
            "update",
            "rope",
            "permute",
        }


def test_loops_take_the_likeliest_and_the_embedding_as_one_op_each(model: Any) -> None:
    made = plan(model.program, "fast", changes=("pack", "fuse")).program
    bodies = [f for f in made.functions() if f.name == "_next"]
    greedy = [f for f in bodies if "peak_of_linear" in ops(f)]
    assert greedy
    for function in greedy:
        found = ops(function)
        assert found["embed_tokens"] == 1
        assert not found.keys() & {"linear", "peak", "permute"}


def test_without_the_change_nothing_is_fused(model: Any) -> None:
    found = Counter[str]()
    for function in plan(model.program, "fast").program.functions():
        found += ops(function)
    assert not found.keys() & {"norm_linear", "linear_add", "attend_step", "attend_heard", "peak_of_linear"}


def test_a_norm_that_others_read_too_stays() -> None:
    # MiniLM's norms come after the sum, and what they give is the next residual as well.
    model = nest.load("all-MiniLM-L6-v2", backend="torch", weights=None, Layers=1)
    made = plan(model.program, "fast", changes=("pack", "fuse")).program
    found = Counter[str]()
    for function in made.functions():
        found += ops(function)
    assert found["norm_linear"] == 0
    assert found["layer_norm"] > 0


def test_without_a_gpu_there_are_no_kernels() -> None:
    assert not fused.fuses(torch.device("cpu"), torch.float16)
