"""Where weights lie: in the checkpoint's own file where they can, else once in a file of the model's."""

from __future__ import annotations

import gc
import mmap
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from nest.backends.onnx import build
from nest.backends.onnx import weights as module
from nest.backends.onnx.weights import WeightFiles
from nest.errors import CallError, WeightsError
from nest.ir.inventory import parameters
from nest.ir.types import ParamSpec
from nest.layers import Block, DType, Float, Linear, Tensor, elaborate, entry


class Mapping(mmap.mmap):
    path: Path


@pytest.fixture
def mapped(tmp_path: Path) -> Callable[[np.ndarray[Any, Any]], Any]:
    """An array as a piece of a mapped file that knows its path, 24 bytes after its start."""

    def make(array: np.ndarray[Any, Any]) -> Any:
        path = tmp_path / f"{array.dtype}.bin"
        path.write_bytes(b"x" * 24 + array.tobytes())
        with path.open("rb") as file:
            mapping = Mapping(file.fileno(), 0, access=mmap.ACCESS_COPY)
        mapping.path = path
        return np.frombuffer(mapping, array.dtype, array.size, 24).reshape(array.shape)

    return make


def specs(**shapes: Any) -> dict[str, ParamSpec]:
    return {name: ParamSpec(name, shape, "f32") for name, shape in shapes.items()}


def place(files: WeightFiles, path: str) -> tuple[Path, int, int]:
    tensor = files.tensor(path)
    return files.root / tensor.location, int(tensor.offset or 0), int(tensor.length or 0)


def test_a_mapped_array_stays_in_its_file(mapped: Any, tmp_path: Path) -> None:
    array = mapped(np.arange(12, dtype="f4").reshape(3, 4))
    files = WeightFiles(specs(a=(3, 4), b=(2, 4), c=(4,)), {"a": array, "b": array[1:], "c": array[2]})
    file = (tmp_path / "float32.bin").resolve()
    assert place(files, "a") == (file, 24, 48)
    assert place(files, "b") == (file, 24 + 16, 32)
    assert place(files, "c") == (file, 24 + 32, 16)
    np.testing.assert_array_equal(files.tensor("b").numpy(), array[1:])


def test_what_is_not_stored_as_it_is_needed_is_written_once(mapped: Any) -> None:
    half = mapped(np.arange(6, dtype="f2").reshape(2, 3))
    turned = mapped(np.arange(6, dtype="f4").reshape(2, 3)).T
    loose = np.ones((2, 3), "f4")
    arrays = {"half": half, "turned": turned, "loose": loose, "tied": loose}
    files = WeightFiles(specs(half=(2, 3), turned=(3, 2), loose=(2, 3), tied=(2, 3)), arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(files.tensor(name).numpy(), array.astype("f4"))
    spilled = {place(files, name)[0] for name in arrays}
    assert len(spilled) == 1
    assert place(files, "tied") == place(files, "loose")
    assert spilled.pop().stat().st_size == 64 + 64 + 24


class Small(Block):
    T: DType

    def build(self) -> None:
        self.proj = Linear(3, 5, self.T)

    @entry
    def go(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 5"]:
        return self.proj(x)

    @entry
    def twice(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 5"]:
        return self.proj(x) * 2.0


def small(**arrays: Any) -> Any:
    program = elaborate(Small, T="f32")
    random = np.random.default_rng(0)
    params = {p: random.standard_normal(s.shape).astype("f4") for p, s in parameters(program).items()}
    return build(program, {**params, **arrays}, threads=1), {**params, **arrays}


def test_entries_read_one_file_and_the_model_owns_it(mapped: Any) -> None:
    model, params = small(**{"proj.weight": mapped(np.arange(15, dtype="f4").reshape(5, 3))})
    x = np.ones((2, 3), "f4")
    want = x @ params["proj.weight"].T + params["proj.bias"]
    np.testing.assert_allclose(model.go(x), want, rtol=1e-6)
    np.testing.assert_allclose(model.twice(x), 2 * want, rtol=1e-6)
    places = []
    for name in ("go", "twice"):
        stored = [v.const_value for v in model.graph(name).graph.initializers.values()]
        places.append({(t.path, t.offset) for t in stored if isinstance(t, ir.ExternalTensor)})
    assert places[0] == places[1]
    assert len(places[0]) == 2
    folder = model.runtime.weights.root / model.runtime.weights.tensor("proj.bias").location
    assert folder.exists()
    del model, stored
    gc.collect()
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_append", full)
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(
        WeightsError, match=rf"cannot be written to {tmp_path}.*: No space left on device.*TMPDIR"
    ):
        WeightFiles(specs(a=(2,)), {"a": np.ones(2, "f4")})
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_not_pickled() -> None:
    with pytest.raises(CallError, match="cannot be pickled or copied; load Small again"):
        pickle.dumps(small()[0])


def test_no_session_copies_the_weights() -> None:
    """The weights are 64 MB; the memory of the process that is no mapped file grows by less than a quarter."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("needs /proc")

    class Wide(Block):
        T: DType

        def build(self) -> None:
            self.proj = Linear(4096, 4096, self.T)

        @entry
        def go(self, x: Float[Tensor, "B 4096"]) -> Float[Tensor, "B 4096"]:
            return self.proj(x)

        @entry
        def twice(self, x: Float[Tensor, "B 4096"]) -> Float[Tensor, "B 4096"]:
            return self.proj(x) * 2.0

    def private() -> int:
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))

    program = elaborate(Wide, T="f32")
    arrays = {p: np.ones(s.shape, "f4") for p, s in parameters(program).items()}
    model = build(program, arrays, threads=1)
    del arrays
    gc.collect()
    before = private()
    x = np.ones((1, 4096), "f4")
    assert model.go(x)[0, 0] == 4097
    assert model.twice(x)[0, 0] == 2 * 4097
    assert private() - before < 16
