"""The small ops of a loop as one kernel: what is taken, and, where Triton is there, what it computes."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import os

import torch

import nest
from nest.backends.torch import fused
from nest.backends.torch.module import TorchModel
from nest.backends.torch.small import fuse_small
from nest.ir.plan import plan
from nest.ir.program import Function, Node

SIZES: dict[str, Any] = {
    "Mels": 5, "Frames": 32, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 1, "DecoderLayers": 1, "Vocab": 97,
    "MaxTokens": 24,
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "D": 16,
    "Heads": 4,
    "KvHeads": 2,
    "HeadDim": 4,
    "Inner": 24,
    "Layers": 1,
    "Vocab": 97,
}


def bodies(name: str, **sizes: Any) -> dict[str, Function]:
    """The loops of a model's entries after small ops were fused."""
    model = nest.load(name, backend="torch", weights=None, seed=1, **sizes)
    made = plan(model.program, "fast", changes=("pack", "fuse")).program
    fuse_small(made)
    return {
        entry: next(n.attrs["body"] for n in function.nodes if n.op == "while_loop")
        for entry, function in made.entries.items()
        if any(n.op == "while_loop" for n in function.nodes)
    }


def test_what_counts_and_keeps_ids_is_one_op() -> None:
    for entry, body in bodies("whisper-tiny", **SIZES).items():
        if entry not in ("greedy", "hear"):
            continue
        found = Counter(n.op for n in body.nodes)
        assert found["small"] == 1
        assert found.keys() <= {"param", "call", "embed_tokens", "peak_of_linear", "small"}, entry


def test_a_text_s_loop_is_as_few_ops() -> None:
    body = bodies("qwen3-0.6b", **LLAMA)["proceed"]
    found = Counter(n.op for n in body.nodes)
    assert found["small"] == 1
    assert found.keys() <= {"param", "constant", "call", "embed_tokens", "peak_of_linear", "small"}


def test_results_stand_in_the_order_of_the_loop() -> None:
    for body in bodies("whisper-tiny", **SIZES).values():
        for result, argument in zip(body.results, body.arguments, strict=True):
            assert result.type.rank == argument.type.rank
            assert result.type.dtype.same(argument.type.dtype)


def test_what_is_read_after_it_was_written_is_not_written_in_place() -> None:
    # A node's operands never change: who looks at `out` after the new ids are in still sees the old ones.
    model = nest.load("whisper-tiny", backend="torch", weights=None, seed=1, **SIZES)
    made = plan(model.program, "fast", changes=("pack", "fuse")).program
    body = next(n.attrs["body"] for n in made.entries["greedy"].nodes if n.op == "while_loop")
    write = next(n for n in body.nodes if n.op == "scatter_set")
    look = next(n for n in body.nodes if n.op == "take_along" and n.inputs[0] is write.inputs[0])
    where = look.location, look.loops
    late = Node("take_along", write.inputs[:2], dict(look.attrs), (look.outputs[0].type,), *where)
    place, kept = next((i, v) for i, v in enumerate(body.results) if v.type.rank == 1)
    shaped = Node("reshape", (late.outputs[0],), {"shape": kept.type.shape}, (kept.type,), *where)
    body.nodes += [late, shaped]
    body.results = type(body.results)((*body.results[:place], shaped.outputs[0], *body.results[place + 1 :]))
    fuse_small(made)
    assert write in body.nodes


interpreted = pytest.mark.skipif(
    find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1" or torch.cuda.is_available(),
    reason="needs Triton's interpreter",
)


@interpreted
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the interpreter
@pytest.mark.parametrize("rows", [1, 3])
def test_the_kernel_computes_what_the_ops_do(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nest.load("whisper-tiny", backend="torch", weights=None, seed=1, **SIZES)
    exact = model.new_session(Batch=rows)
    monkeypatch.setattr(TorchModel, "_fuses", lambda self: True)
    monkeypatch.setattr(fused, "_few", lambda x, count: False)
    fast = model.new_session(Batch=rows, plan="fast")
    assert "fused.small(" in fast.model.source
    mel = np.random.default_rng(0).standard_normal((rows, 5, 32)).astype(np.float32)
    prompt, out = np.array([[3, 90]] * rows, np.int32), np.zeros((rows, 9), np.int32)
    for end in (-1, int(exact.numpy(exact.hear(mel, prompt, out, end=np.int32(-1))[0])[0, 3])):
        want, got = (s.hear(mel, prompt, out, end=np.int32(end)) for s in (exact, fast))
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(fast.numpy(b), exact.numpy(a), rtol=1e-5)


@interpreted
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the interpreter
@pytest.mark.parametrize("rows", [1, 3])
def test_a_text_ends_at_any_of_several_ids(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nest.load("qwen3-0.6b", backend="torch", weights=None, seed=1, dtype="f32", **LLAMA)
    exact = model.new_session(Batch=rows, Capacity=32)
    monkeypatch.setattr(TorchModel, "_fuses", lambda self: True)
    monkeypatch.setattr(fused, "_few", lambda x, count: False)
    fast = model.new_session(Batch=rows, Capacity=32, plan="fast")
    prompt = np.random.default_rng(0).integers(0, 97, (rows, 3)).astype(np.int32)
    given = {
        "token": prompt[:, -1], "pos": np.full(rows, 2, np.int32), "done": np.zeros(rows, np.bool_),
        "out": np.zeros((rows, 8), np.int32), "count": np.int32(7),
    }  # fmt: skip
    found: Any = None
    for ends in ([-1, -1], [5, 0]):
        if found is not None:
            ends[1] = int(found[0, 3])
        results = []
        for session in (exact, fast):
            session.prefill(prompt[:, :2], np.full(rows, 2, np.int32))
            made = session.proceed(**given, ends=np.array(ends, np.int32))
            results.append([session.numpy(x) for x in made])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
        found = results[0][0]
