"""Graphs are made once: a warm process finds them, whatever happened to the files in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.backends.onnx import lower
from nest.backends.onnx.graph_cache import GraphCache
from nest.backends.onnx.ports import Ports, StatePort

SIZES: dict[str, Any] = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 1, "DecoderLayers": 2, "Vocab": 101,
    "MaxTokens": 16,
}  # fmt: skip
PORTS = Ports(("x",), ("result",), (StatePort("a.k", "past.a.k", None, False),))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path))
    return tmp_path / "onnx"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries whose graphs were made."""
    names: list[str] = []
    real = lower.lower

    def counted(program: Any, name: str, *args: Any, **options: Any) -> Any:
        names.append(name)
        return real(program, name, *args, **options)

    monkeypatch.setattr(lower, "lower", counted)
    return names


def step(plan: str = "exact", **options: Any) -> Any:
    """Logits after a prompt and a token."""
    model = nest.load("whisper-tiny", backend="onnx", weights=None, seed=3, **{**SIZES, **options})
    session = model.new_session(plan=plan)
    session.prefill(np.array([[1, 2]], np.int32))
    return session.step(np.array([[3]], np.int32), np.array([2], np.int32))


@pytest.mark.parametrize("plan", ["exact", "fast"])
def test_a_second_model_finds_its_graphs(made: list[str], plan: str) -> None:
    first = step(plan)
    assert made == ["prefill", "step"]
    # Its weights lie in another temporary folder, to which the graphs found refer.
    np.testing.assert_array_equal(step(plan), first)
    assert made == ["prefill", "step"]


@pytest.mark.parametrize("other", [{"plan": "fast"}, {"T": "f16"}, {"Vocab": 102}, {"DecoderLayers": 1}])
def test_another_model_has_graphs_of_its_own(made: list[str], other: dict[str, Any]) -> None:
    step()
    step(**other)
    assert made == ["prefill", "step"] * 2


def test_weights_are_no_part_of_a_graph(made: list[str]) -> None:
    first = step()
    model = nest.load("whisper-tiny", backend="onnx", weights=None, seed=4, **SIZES)
    model.prefill(np.array([[1, 2]], np.int32))
    other = model.step(np.array([[3]], np.int32), np.array([2], np.int32))
    assert made == ["prefill", "step"]
    assert np.abs(other - first).max() > 1e-3


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"no json\nmodel", b'{"sha256": "0", "ports": {}}\nmodel'])
def test_a_damaged_file_is_made_again(made: list[str], folder: Path, damage: bytes) -> None:
    first = step()
    for path in folder.glob("*.graph"):
        path.write_bytes(damage)
    np.testing.assert_array_equal(step(), first)
    assert made == ["prefill", "step"] * 2
    np.testing.assert_array_equal(step(), first)
    assert made == ["prefill", "step"] * 2


def test_one_bit_is_enough(folder: Path) -> None:
    cache = GraphCache(folder)
    cache.put("key", PORTS, b"a model")
    assert cache.get("key") == (PORTS, b"a model")
    path = folder / "key.graph"
    path.write_bytes(path.read_bytes()[:-1] + b"m")
    assert cache.get("key") is None


def test_a_cache_that_cannot_be_written_is_an_empty_one(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "onnx").write_text("a file in the folder's place", encoding="utf-8")
    np.testing.assert_array_equal(step(), step())
    assert made == ["prefill", "step"] * 2


def test_what_was_used_longest_ago_goes_first(folder: Path) -> None:
    cache = GraphCache(folder)
    for age, key in enumerate(["new", "used", "old"]):
        cache.put(key, PORTS, b"x" * 1000)
        os.utime(folder / f"{key}.graph", (1e9 - age, 1e9 - age))
    assert cache.get("old") is not None
    cache.prune(2600)
    assert {p.stem for p in folder.glob("*.graph")} == {"old", "new"}
    assert not list(folder.glob(".*"))


def test_a_warm_process_imports_nothing_that_makes_graphs() -> None:
    code = (
        f"import sys, numpy, nest\nsizes = {SIZES!r}\n"
        "model = nest.load('whisper-tiny', backend='onnx', weights=None, **sizes)\n"
        "model.prefill(numpy.array([[1, 2]], numpy.int32))\n"
        "print(*(m for m in ('onnx_ir', 'sympy') if m in sys.modules))"
    )
    cold, warm = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert "onnx_ir" in cold.stdout
    assert warm.stdout.strip() == ""
