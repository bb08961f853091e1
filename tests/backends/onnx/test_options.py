"""Providers, threads and options: taken as asked, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from nest.backends.onnx import options as module
from nest.backends.onnx.options import Options, available_cores
from nest.errors import CallError

CPU = "CPUExecutionProvider"


def options(**given: Any) -> Options:
    return Options(
        **{"providers": None, "threads": None, "session_options": None, "folder": Path("/"), **given}
    )


def test_the_cpu_alone_is_used_by_default() -> None:
    assert options().providers == [(CPU, {})]
    assert options(providers=[(CPU, {"arena_extend_strategy": "kSameAsRequested"})]).providers[0][0] == CPU


def test_a_provider_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        CallError,
        match=r"no provider 'CUDAExecutionProvider'; it has .*CPUExecutionProvider.*onnxruntime-gpu",
    ):
        options(providers=["CUDAExecutionProvider", CPU])
    with pytest.raises(CallError, match=r"a name, or a pair of a name and its options; got 3"):
        options(providers=[3])


def test_a_provider_that_does_not_load_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the libraries of CUDA are missing: the runtime lists the provider, and falls back."""
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider", CPU])

    class Fallen:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            assert kwargs["providers"][0] == ("CUDAExecutionProvider", {"device_id": "1"})

        def get_providers(self) -> list[str]:
            return [CPU]

        def disable_fallback(self) -> None:
            pass

    monkeypatch.setattr(ort, "InferenceSession", Fallen)
    with pytest.raises(
        CallError, match=r"could not load the provider 'CUDAExecutionProvider' and would run .* on CPU"
    ):
        options(providers=[("CUDAExecutionProvider", {"device_id": "1"}), CPU])


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_is_a_positive_integer(threads: Any) -> None:
    with pytest.raises(CallError, match="threads is a positive integer"):
        options(threads=threads)


def test_threads_reach_the_runtime_and_follow_what_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert options(threads=3).session_options().intra_op_num_threads == 3
    monkeypatch.setattr(module, "available_cores", lambda: 5)
    assert options().session_options().intra_op_num_threads == 5


@pytest.mark.parametrize(
    ("cpu_max", "affinity", "cores"),
    [
        ("max 100000", 6, 6),
        ("250000 100000", 6, 2),
        ("50000 100000", 6, 1),
        ("800000 100000", 6, 6),
        (None, 6, 6),
    ],
)
def test_cores_are_the_affinity_within_the_quota(
    cpu_max: str | None, affinity: int, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path, **kwargs: Any) -> str:
        if cpu_max is None:
            raise FileNotFoundError(path)
        return cpu_max + "\n"

    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
    monkeypatch.setattr(Path, "read_text", read)
    assert available_cores() == cores


def test_session_options_are_attributes_and_entries() -> None:
    made = options(
        session_options={
            "graph_optimization_level": "basic",
            "enable_cpu_mem_arena": False,
            "session.intra_op.allow_spinning": 0,
        }
    ).session_options()
    assert made.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert made.enable_cpu_mem_arena is False
    assert made.get_session_config_entry("session.intra_op.allow_spinning") == "0"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"graph_optimisation_level": "all"},
            r"no attribute 'graph_optimisation_level'.*graph_optimization_level",
        ),
        ({"add_initializer": 1}, r"no attribute 'add_initializer'"),
        ({"graph_optimization_level": "most"}, r"one of none, basic, extended, all; got 'most'"),
        ({"enable_profiling": "a lot"}, r"enable_profiling does not take 'a lot'"),
    ],
)
def test_unknown_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CallError, match=message):
        options(session_options=given)
