"""Weights that a plan makes are made once: a warm process finds them, whatever happened to the files in between."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.backends.onnx import build, quantized, weights
from nest.backends.onnx.made_weights import MadeWeights
from nest.layers import Block, Dim, Float32, Int32, Param, Tensor, elaborate, entry, linear
from nest.layers.ops import peak

ROWS, WIDTH = 300, 12
X = np.random.default_rng(0).standard_normal((1, WIDTH)).astype(np.float32)
BIAS = np.zeros(ROWS, np.float32)


class Head(Block):
    Vocab: Dim
    D: Dim

    def build(self) -> None:
        self.head = Param("Vocab D", "f32")

    @entry
    def likeliest(
        self, x: Float32[Tensor, "B D"], bias: Float32[Tensor, "Vocab"]
    ) -> tuple[Int32[Tensor, "B"], Float32[Tensor, "B"], Float32[Tensor, "B"]]:
        return peak(linear(x, self.head), bias)


class Mapping(mmap.mmap):
    path: Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "onnx"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An element for each time that a matrix was quantized."""
    times: list[int] = []

    def counted(matrix: Any) -> Any:
        times.append(1)
        return quantized.quantized(matrix)

    packer = weights._PACKER
    monkeypatch.setattr(
        weights, "_PACKER", type(packer)(packer.concat, packer.transpose, packer.zeros, counted)
    )
    return times


def head(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((ROWS, WIDTH)).astype(np.float32)


def written(path: Path, seed: int = 1, skip: int = 0) -> Any:
    """A head as a piece of a mapped file, as checkpoints are read."""
    path.write_bytes(b"x" * skip + head(seed).tobytes())
    with path.open("rb") as file:
        mapping = Mapping(file.fileno(), 0, access=mmap.ACCESS_COPY)
    mapping.path = path
    return np.frombuffer(mapping, np.float32, ROWS * WIDTH, skip).reshape(ROWS, WIDTH)


def found(array: Any) -> int:
    model = build(elaborate(Head, Vocab=ROWS, D=WIDTH), {"head": array}, threads=1)
    place: int = model.new_session(plan="fast").likeliest(X, BIAS)[0][0]
    return place


def test_a_second_model_finds_them(made: list[int], folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    want = int((X @ head(1).T).argmax())
    assert found(written(path)) == want
    stamp = path.stat()
    array = written(path)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert found(array) == want
    assert made == [1]
    assert len(list(folder.glob("*.weights"))) == 1


def test_another_checkpoint_has_its_own(made: list[int], tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    assert found(written(path)) == int((X @ head(1).T).argmax())
    # The file is written anew, with as many bytes.
    array = written(path, seed=2)
    os.utime(path, ns=(1, 1))
    assert found(array) == int((X @ head(2).T).argmax())
    assert found(written(path, skip=4)) == int((X @ head(1).T).argmax())
    assert found(written(tmp_path / "b.bin", seed=3)) == int((X @ head(3).T).argmax())
    assert made == [1] * 4


@pytest.mark.parametrize("damage", ["cut", "empty", "no number", "no table"])
def test_a_damaged_file_is_made_again(made: list[int], folder: Path, tmp_path: Path, damage: str) -> None:
    array = written(tmp_path / "a.bin")
    want = found(array)
    (kept,) = folder.glob("*.weights")
    whole = kept.read_bytes()
    kept.write_bytes(
        {
            "cut": whole[:1000] + whole[2000:],
            "empty": b"",
            "no number": whole[:-3] + b"abc",
            "no table": b"%16d" % 0,
        }[damage]
    )
    assert found(array) == want
    assert kept.read_bytes() == whole
    assert made == [1, 1]


def test_a_folder_that_cannot_be_written_is_an_empty_one(
    made: list[int], folder: Path, tmp_path: Path
) -> None:
    folder.parent.write_bytes(b"a file")
    array = written(tmp_path / "a.bin")
    assert found(array) == found(array)
    assert made == [1, 1]


def test_what_is_in_memory_alone_is_not_kept(made: list[int], folder: Path) -> None:
    assert found(head(1)) == found(head(1))
    assert made == [1, 1]
    assert not list(folder.glob("*.weights"))


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = MadeWeights(tmp_path)
    for key, days in (("old", 9), ("older", 10), ("new", 0)):
        assert cache.put(key, lambda file: {"x": (0, file.write(b"12345678"))}) is not None
        then = time.time() - days * 24 * 3600
        os.utime(tmp_path / f"{key}.weights", (then, then))
    cache.prune(150)
    assert sorted(p.stem for p in tmp_path.glob("*.weights")) == ["new", "old"]
    # What a process may have found a moment ago stays, however much there is.
    cache.prune(0)
    assert [p.stem for p in tmp_path.glob("*.weights")] == ["new"]
