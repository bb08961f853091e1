"""Loops as graphs, with graphs that are recorded on the CPU: every op again, into the same memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import nest
from nest.backends.torch import graphs
from nest.backends.torch.graphs import GraphRunner
from nest.backends.torch.module import TorchModel

SIZES: dict[str, Any] = {
    "Mels": 5, "Frames": 160, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 1, "DecoderLayers": 2, "Vocab": 97,
    "MaxTokens": 48,
}  # fmt: skip


class Tape(TorchDispatchMode):
    """Writes down each op with the memory that it read and wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError("a graph cannot look at a number")
        made = func(*args, **(kwargs or {}))
        self.ops.append((func, args, kwargs or {}, made))
        return made

    def play(self) -> None:
        for func, args, kwargs, before in self.ops:
            again = func(*args, **kwargs)
            for old, new in zip(tree_flatten(before)[0], tree_flatten(again)[0], strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Recorded:
    """As `_Recorded`, of a tape."""

    made = 0

    def __init__(
        self, function: Callable[..., Any], arguments: Sequence[torch.Tensor], *, copied: bool = True
    ) -> None:
        Recorded.made += 1
        self.inputs = [a.clone() for a in arguments] if copied else list(arguments)
        function(*(a.clone() for a in self.inputs))
        self.tape = Tape()
        with self.tape:
            self.outputs = function(*self.inputs)

    def __call__(self, arguments: Sequence[torch.Tensor]) -> Any:
        for held, given in zip(self.inputs, arguments, strict=True):
            if held.data_ptr() != given.data_ptr():
                held.copy_(given)
        self.tape.play()
        return self.outputs


class Look:
    """As `_Look`, without a device."""

    def __init__(self) -> None:
        self.flag = torch.zeros((), dtype=torch.bool)

    def leave(self, condition: torch.Tensor) -> None:
        self.flag.copy_(condition)

    def __call__(self) -> bool:
        return bool(self.flag)


@pytest.fixture(autouse=True)
def taped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_Recorded", Recorded)
    monkeypatch.setattr(graphs, "_Look", Look)
    Recorded.made = 0


def sessions(plan: str) -> tuple[Any, Any]:
    model = nest.load("whisper-tiny", backend="torch", weights=None, seed=3, **SIZES)
    plain, recorded = (model.new_session(Batch=2, plan=plan) for _ in range(2))
    recorded.graphs = recorded.state.runner = GraphRunner(recorded.state)
    return plain, recorded


def heard(session: Any, seed: int, prompt: Any, count: int, end: int) -> list[Any]:
    mel = np.random.default_rng(seed).standard_normal((2, 5, 160)).astype(np.float32)
    made = session.hear(mel, prompt, np.zeros((2, count), np.int32), end=np.int32(end))
    return [session.numpy(x) for x in made]


@pytest.mark.parametrize("plan", ["exact", "fast"])
def test_a_loop_gives_what_it_gives_without_graphs(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TorchModel, "_changes", lambda self: ("pack", "fuse"))
    plain, recorded = sessions(plan)
    prompt = np.array([[3, 90, 1], [7, 2, 0]], np.int32)
    # Ends in the first graph, in a later one, at the last slot, never: the id that a row ends with says when.
    (ids, *_) = heard(plain, 0, prompt, 24, -1)
    ends = {-1, int(ids[0, 2]), int(ids[1, 12]), int(ids[0, 23])}
    for end in ends:
        for seed in (0, 1):
            want, got = (heard(s, seed, prompt, 24, end) for s in (plain, recorded))
            for a, b in zip(want, got, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-6)
    assert Recorded.made == 2, "one graph for the start, one for what comes after, whatever is called"


@pytest.mark.parametrize("count", [1, 8, 9, 10, 17, 24])
def test_the_host_looks_once_a_chunk(count: int) -> None:
    _, recorded = sessions("fast")
    heard(recorded, 0, np.array([[3, 1], [7, 2]], np.int32), count, -1)
    # A chunk is 8 ids, the first of them comes of the prompt.
    assert recorded.graphs.looks == -(-count // 8)


def test_results_outlive_the_next_call() -> None:
    _, recorded = sessions("fast")
    prompt = np.array([[3, 1], [7, 2]], np.int32)
    mel = np.random.default_rng(0).standard_normal((2, 5, 160)).astype(np.float32)
    ids, *_ = recorded.hear(mel, prompt, np.zeros((2, 12), np.int32), end=np.int32(-1))
    kept = ids.clone()
    heard(recorded, 1, prompt, 12, -1)
    assert torch.equal(ids, kept)


def test_a_recording_leaves_states_as_they_were() -> None:
    plain, recorded = sessions("fast")
    prompt, lengths = np.array([[3, 1], [7, 2]], np.int32), np.array([2, 2], np.int32)
    mel = np.random.default_rng(0).standard_normal((2, 5, 160)).astype(np.float32)
    for session in (plain, recorded):
        session.listen(mel)
        session.greedy(prompt, np.zeros((2, 12), np.int32), end=np.int32(-1), lengths=lengths)
    want, got = plain.state_dict(), recorded.state_dict()
    for name, value in want.items():
        if "cross" in name:
            np.testing.assert_allclose(got[name], value, rtol=1e-6, err_msg=name)


def test_what_comes_after_a_loop_is_not_recorded() -> None:
    runner = GraphRunner(state=[])

    def method(x: torch.Tensor, state: Any) -> torch.Tensor:
        (count,) = runner(lambda n: n < 3, lambda n: (n + 1,), (x,), 100) if runner.recording else (x,)
        return count * 2

    assert runner.looping("odd", method, [torch.tensor(1)]) == 2
    assert runner.looping("odd", method, [torch.tensor(4)]) == 8
