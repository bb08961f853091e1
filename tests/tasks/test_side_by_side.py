"""Calls side by side: in order, each by one thread where the backend shares a call among threads, errors passed on."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nest
from nest.tasks._side_by_side import Calls, budget_of

CPU, GPU = ["CPUExecutionProvider"], ["CUDAExecutionProvider", "CPUExecutionProvider"]


class Model:
    """Counts its sessions by the threads that they were asked for."""

    def __init__(self, backend: str = "onnx", threads: int = 2, providers: list[str] = CPU) -> None:
        self.backend, self.threads = backend, threads
        if backend == "onnx":
            self.providers = providers
        self.made: list[Any] = []

    def new_session(self, **options: Any) -> Any:
        self.made.append(options)
        return SimpleNamespace(**options)


def test_many_calls_are_shared_among_sessions_of_one_thread_each() -> None:
    model = Model()
    together = threading.Barrier(2, timeout=20)

    def call(session: Any, item: int) -> tuple[int, int]:
        if item < 2:  # passes only if two calls are under way at once
            together.wait()
        return item, session.threads

    assert Calls(model, plan="fast").each(range(9), call) == [(i, 1) for i in range(9)]
    assert model.made == [{"threads": 1, "plan": "fast"}] * 2


@pytest.mark.parametrize(
    "model", [Model(threads=1), Model("torch", 2), Model(providers=GPU)], ids=["one thread", "torch", "gpu"]
)
def test_elsewhere_they_follow_each_other_on_one_session(model: Model) -> None:
    assert Calls(model).each(range(9), lambda session, item: item * 2) == [2 * i for i in range(9)]
    assert model.made == [{}]


def test_few_calls_have_all_threads_each() -> None:
    model = Model()
    assert Calls(model).each(range(3), lambda session, item: item) == [0, 1, 2]
    assert Calls(model).each([], lambda session, item: item) == []
    assert {"threads": 1} not in model.made


def test_an_error_of_one_call_is_the_caller_s() -> None:
    def call(session: Any, item: int) -> int:
        if item == 5:
            raise ValueError("five")
        return item

    with pytest.raises(ValueError, match="five"):
        Calls(Model()).each(range(9), call)


def test_a_cpu_is_given_few_tokens_a_call() -> None:
    assert budget_of(Model()) < budget_of(Model(providers=GPU))
    gpu = SimpleNamespace(backend="torch", device=SimpleNamespace(type="cuda"))
    assert budget_of(SimpleNamespace(backend="torch", device=SimpleNamespace(type="cpu"))) < budget_of(gpu)


def test_sessions_of_other_threads_give_the_same() -> None:
    pytest.importorskip("onnxruntime")
    sizes = {"D": 16, "Heads": 2, "Inner": 24, "Layers": 1, "Vocab": 50, "Positions": 16}
    model = nest.load("all-MiniLM-L6-v2", backend="onnx", weights=None, threads=2, **sizes)
    tokens, lengths = np.array([[3, 4, 5, 0]], np.int32), np.array([3], np.int32)
    for plan in ("exact", "fast"):
        one, two = (model.new_session(plan=plan, threads=n) for n in (1, 2))
        assert one.runtime.options.threads == 1
        assert two.runtime.options.threads == 2
        assert model.new_session(plan=plan, threads=1).runtime is one.runtime
        assert one.runtime.weights is two.runtime.weights
        np.testing.assert_allclose(
            one.embed(tokens, lengths), two.embed(tokens, lengths), rtol=1e-5, atol=1e-6
        )
    with pytest.raises(nest.errors.CallError, match="threads is a positive integer, and 0 was given"):
        model.new_session(threads=0)
