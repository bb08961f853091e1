"""Checkpoints: mapped and not copied; damaged files refused before a tensor is looked at."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from nest.errors import WeightsError
from nest.ir.parammap import TensorSpec
from nest.weights import TensorView, open_checkpoint
from nest.weights.writer import write_safetensors

ARRAYS = {
    "a.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b.ids": np.arange(5, dtype=np.int64),
    "c.half": np.arange(6, dtype=np.float16).reshape(2, 3),
    "d.mask": np.array([True, False, True]),
    "e.scalar": np.array(2.5, dtype=np.float64),
    "f.empty": np.zeros((0, 4), dtype=np.float32),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file(ARRAYS, path)
    return path


def _raw(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def _entry(dtype: str, shape: list[Any], start: int, stop: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def test_the_tensors(file: Path) -> None:
    checkpoint = open_checkpoint(file)
    assert set(checkpoint) == set(ARRAYS)
    for name, array in ARRAYS.items():
        found = checkpoint[name].array()
        np.testing.assert_array_equal(found, array)
        assert (found.dtype, found.shape) == (array.dtype, checkpoint[name].shape)
    assert {name: str(view.spec) for name, view in checkpoint.items()} == {
        "a.weight": "f32[3, 4]",
        "b.ids": "i64[5]",
        "c.half": "f16[2, 3]",
        "d.mask": "bool[3]",
        "e.scalar": "f64[]",
        "f.empty": "f32[0, 4]",
    }


def test_arrays_are_views_that_write_to_memory_only(file: Path) -> None:
    before = file.read_bytes()
    checkpoint = open_checkpoint(file)
    one, other = checkpoint["a.weight"].array(), checkpoint["a.weight"].array()
    assert one.flags.writeable
    assert np.shares_memory(one, other)
    one[0, 0] = 99.0
    assert other[0, 0] == 99.0
    assert file.read_bytes() == before


def test_arrays_outlive_the_checkpoint(file: Path) -> None:
    array = open_checkpoint(file)["a.weight"].array()
    file.unlink()
    np.testing.assert_array_equal(array, ARRAYS["a.weight"])


def test_brain_floats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0001], np.uint16)
    path = _raw(tmp_path / "b.safetensors", {"x": _entry("BF16", [4], 0, 8)}, bits.tobytes())
    expected = (bits.astype(np.uint32) << 16).view(np.float32)
    view = open_checkpoint(path)["x"]
    np.testing.assert_array_equal(view.array().astype(np.float32), expected)
    monkeypatch.setattr("nest.weights.checkpoint.numpy_dtype", lambda _: None)
    assert view.array().dtype == np.float32
    np.testing.assert_array_equal(view.array(), expected)


@pytest.fixture
def eight_bits(tmp_path: Path) -> TensorView:
    path = _raw(tmp_path / "b.safetensors", {"x": _entry("F8_E4M3", [1], 0, 1)}, b"\x38")
    return open_checkpoint(path)["x"]


def test_an_8_bit_float(eight_bits: TensorView) -> None:
    pytest.importorskip("ml_dtypes")
    assert eight_bits.array().astype(np.float32).tolist() == [1.0]


def test_an_8_bit_float_without_ml_dtypes(eight_bits: TensorView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nest.weights.checkpoint.numpy_dtype", lambda _: None)
    with pytest.raises(WeightsError, match="tensor 'x' is f8_e4m3, which needs the package 'ml_dtypes'"):
        eight_bits.array()


def test_unaligned_data_is_copied(tmp_path: Path) -> None:
    header = json.dumps({"x": _entry("F32", [2], 0, 8)}).encode()
    header += b" " * (-(len(header) + 7) % 8)  # the data starts one byte past a multiple of 8
    path = _raw(tmp_path / "u.safetensors", header, np.array([1, 2], np.float32).tobytes())
    array = open_checkpoint(path)["x"].array()
    assert array.flags.aligned
    assert array.tolist() == [1.0, 2.0]


def test_shards(tmp_path: Path) -> None:
    for index, name in enumerate("ab"):
        save_file({name: np.full(2, index, np.float32)}, tmp_path / f"{name}.safetensors")
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    assert set(open_checkpoint(paths)) == {"a", "b"}
    with pytest.raises(WeightsError, match="repeats the tensor 'a' of another file"):
        open_checkpoint([paths[0], paths[0]])


class TestDamage:
    @pytest.mark.parametrize("keep", [0, 7, 8, 100, -1, -40])
    def test_a_truncated_file_says_what_it_should_have(self, file: Path, keep: int) -> None:
        whole = file.read_bytes()
        file.write_bytes(whole[:keep])
        with pytest.raises(WeightsError) as caught:
            open_checkpoint(file)
        text = str(caught.value)
        assert str(file) in text
        if keep < 0:
            assert (
                f"is truncated: its header calls for {len(whole)} bytes; the file has {len(whole) + keep}"
                in text
            )

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match=r"x\.safetensors cannot be read: No such file"):
            open_checkpoint(tmp_path / "x.safetensors")

    def test_bytes_after_the_last_tensor(self, file: Path) -> None:
        file.write_bytes(file.read_bytes() + b"more")
        with pytest.raises(WeightsError, match="has 4 bytes after its last tensor"):
            open_checkpoint(file)

    @pytest.mark.parametrize(
        ("header", "data", "words"),
        [
            (b"{", b"", "its header is not valid JSON"),
            (b"[]", b"", "its header is not a JSON object"),
            (b"[" * 100_000, b"", "its header is not valid JSON"),
            (b'{"x": 1, "x": 2}', b"", "a name stands twice"),
            (b"\xff", b"", "its header is not valid JSON"),
            ({"x": {"dtype": "F32"}}, b"", "the header of tensor 'x' lacks dtype, shape or data_offsets"),
            ({"x": 3}, b"", "the header of tensor 'x' lacks"),
            ({"x": _entry("F31", [1], 0, 4)}, b"1234", "tensor 'x' has the dtype 'F31'; nest reads BOOL"),
            ({"x": _entry("F32", [-1], 0, 4)}, b"1234", "shape or offsets that are no counts"),
            ({"x": _entry("F32", [True], 0, 4)}, b"1234", "shape or offsets that are no counts"),
            ({"x": _entry("F32", [1.0], 0, 4)}, b"1234", "shape or offsets that are no counts"),
            ({"x": _entry("F32", [2], 0, 4)}, b"1234", "f32[2], takes 8 bytes; its offsets: 4"),
            ({"x": _entry("F32", [1], 4, 8)}, b"12345678", "tensor 'x' leaves a gap before it"),
            (
                {"x": _entry("F32", [1], 0, 4), "y": _entry("F32", [1], 2, 6)},
                b"123456",
                "tensor 'y' overlaps the tensor before it",
            ),
            ({"x": _entry("F32", [2**62], 0, 2**64)}, b"", "is truncated"),
            ({"x": {**_entry("F32", [1], 0, 4), "dtype": ["F32"]}}, b"1234", "the dtype ['F32']; nest reads"),
            (
                {"x": _entry("F32", [1] * 65, 0, 4)},
                b"1234",
                "tensor 'x' has a shape that no array has: [1, 1,",
            ),
            ({"x": _entry("F32", [0, 2**63], 0, 0)}, b"", "tensor 'x' has a shape that no array has: [0, 9"),
            ("{}".encode("utf-16"), b"", "its header is not valid JSON"),
            (b"\xef\xbb\xbf{}", b"", "its header is not valid JSON"),
        ],
    )
    def test_a_header_that_is_not_valid(self, tmp_path: Path, header: Any, data: bytes, words: str) -> None:
        with pytest.raises(WeightsError) as caught:
            open_checkpoint(_raw(tmp_path / "x.safetensors", header, data))
        assert words in str(caught.value)

    def test_a_header_longer_than_any(self, tmp_path: Path) -> None:
        path = tmp_path / "x.safetensors"
        path.write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
        with pytest.raises(
            WeightsError, match="its first 8 bytes give a header of 4611686018427387904 bytes"
        ):
            open_checkpoint(path)

    @given(position=st.integers(0, 400), value=st.integers(0, 255))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
    def test_a_changed_byte_gives_tensors_or_an_error(self, file: Path, position: int, value: int) -> None:
        content = bytearray(file.read_bytes())
        content[position % len(content)] = value
        changed = file.with_name("changed.safetensors")
        changed.write_bytes(content)
        with contextlib.suppress(WeightsError):
            for view in open_checkpoint(changed).values():
                assert view.array().shape == view.shape


class TestWriter:
    SPECS = {  # noqa: RUF012
        "b": TensorSpec((3,), "f16"),
        "a": TensorSpec((2, 2), "f32"),
        "c": TensorSpec((1,), "i64"),
    }
    ARRAYS = {  # noqa: RUF012
        "b": np.arange(3, dtype=np.float16),
        "a": np.arange(4, dtype=np.float32).reshape(2, 2).T,
        "c": np.array([7]),
    }

    def test_the_reference_library_reads_it(self, tmp_path: Path) -> None:
        path = tmp_path / "w.safetensors"
        write_safetensors(path, self.SPECS, self.ARRAYS.__getitem__)
        found = load_file(path)
        assert list(open_checkpoint(path)) == ["c", "a", "b"]
        for name, array in self.ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)

    def test_the_same_tensors_give_the_same_bytes(self, tmp_path: Path) -> None:
        one, other = tmp_path / "1", tmp_path / "2"
        write_safetensors(one, self.SPECS, self.ARRAYS.__getitem__)
        write_safetensors(other, dict(reversed(self.SPECS.items())), self.ARRAYS.__getitem__)
        assert one.read_bytes() == other.read_bytes()

    def test_the_reference_library_writes_the_same(self, tmp_path: Path) -> None:
        one, other = tmp_path / "1", tmp_path / "2"
        write_safetensors(one, self.SPECS, self.ARRAYS.__getitem__)
        arrays = {name: np.ascontiguousarray(array) for name, array in self.ARRAYS.items()}
        save_file(arrays, other, metadata={"format": "pt"})
        assert one.read_bytes() == other.read_bytes()

    def test_a_failure_leaves_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "w.safetensors"
        path.write_bytes(b"what was there")
        wrong = {**self.ARRAYS, "b": np.zeros(4, np.float16)}
        with pytest.raises(
            WeightsError, match=r"Tensor 'b' was declared as f16\[3\]; its array is float16\[4\]"
        ):
            write_safetensors(path, self.SPECS, wrong.__getitem__)
        assert path.read_bytes() == b"what was there"
        assert list(tmp_path.iterdir()) == [path]
