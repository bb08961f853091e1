"""Caches in another element type than the model computes in: half the memory, close results, on every backend."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError

SIZES: dict[str, Any] = {
    "Mels": 5, "Frames": 32, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 1, "DecoderLayers": 2, "Vocab": 97,
    "MaxTokens": 24,
}  # fmt: skip
PROMPT, LENGTHS = np.array([[3, 90, 1], [7, 2, 0]], np.int32), np.array([3, 2], np.int32)
BACKENDS = ["reference", "torch", "jax", "nnx", "onnx"]


def model(backend: str, **options: Any) -> Any:
    return nest.load("whisper-tiny", backend=backend, weights=None, seed=5, **SIZES, **options)


def heard(of: Any, plan: str) -> tuple[Any, Any, dict[str, Any]]:
    mel = np.random.default_rng(0).standard_normal((2, 5, 32)).astype(np.float32)
    session = of.new_session(Batch=2, **({} if plan == "exact" else {"plan": plan}))
    session.listen(mel)
    session.prefill(PROMPT, LENGTHS)
    logits = session.numpy(session.step(np.array([[9], [80]], np.int32), LENGTHS))
    ids = session.numpy(session.hear(mel, PROMPT, np.zeros((2, 6), np.int32), end=np.int32(-1))[0])
    return logits, ids, session.state_dict()


@pytest.mark.parametrize("plan", ["exact", "fast"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_half_the_memory_and_close_results(backend: str, plan: str) -> None:
    plan = "exact" if backend == "reference" else plan
    (logits, ids, states), (near, same, halved) = (
        heard(model(backend, **given), plan) for given in ({}, {"caches": "f16"})
    )
    off = np.abs(near - logits).max() / np.abs(logits).max()
    assert 0 < off < 5e-3
    np.testing.assert_array_equal(same, ids)
    assert sum(x.nbytes for x in states.values()) == 2 * sum(x.nbytes for x in halved.values())
    assert near.dtype == logits.dtype


def test_beside_quantized_weights() -> None:
    sizes = {**SIZES, "D": 48, "Inner": 64, "quantize": "int8"}
    found = [
        heard(nest.load("whisper-tiny", backend="torch", weights=None, seed=5, **sizes, **given), "exact")
        for given in ({}, {"caches": "f16"})
    ]
    (logits, ids, _), (near, same, halved) = found
    assert np.abs(near - logits).max() < 5e-3 * np.abs(logits).max()
    np.testing.assert_array_equal(same, ids)
    assert {x.dtype for x in halved.values()} == {np.dtype(np.float16)}


def test_wider_caches_than_the_model() -> None:
    states = heard(model("torch", dtype="f16", caches="f32"), "exact")[2]
    assert {x.dtype for x in states.values()} == {np.dtype(np.float32)}


def test_a_copy_keeps_them() -> None:
    first = model("torch", caches="f16")
    assert heard(copy.deepcopy(first), "exact")[2].keys() == heard(first, "exact")[2].keys()


@pytest.mark.parametrize("caches", ["int8", "", 16])
def test_a_type_that_there_is_not(caches: Any) -> None:
    with pytest.raises(CallError, match="caches is one of f32, f16, bf16; came"):
        model("torch", caches=caches)


def test_a_model_without_caches() -> None:
    sizes = {"D": 16, "Heads": 2, "Inner": 24, "Layers": 1, "Vocab": 50, "Positions": 16}
    with pytest.raises(CallError, match=r"has no caches: leave caches= out"):
        nest.load("all-MiniLM-L6-v2", backend="torch", weights=None, caches="f16", **sizes)


def test_bf16_is_refused_on_onnx() -> None:
    with pytest.raises(
        CallError, match=r"has no caches in bf16, which numpy does not have; take caches='f16'"
    ):
        model("onnx", caches="bf16")
