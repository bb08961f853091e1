"""Weights that a caller brings: arrays and tensors by definition path, and the files of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

import nest
from nest.errors import BindingError, WeightsError
from nest.layers import Block, Dim, DType, Float, Linear, Tensor, entry

ONES = np.ones((1, 2), np.float32)
WEIGHT, BIAS = np.array([[1, 2], [3, 4]], np.float32), np.array([5, 6], np.float32)
RESULT = [[8.0, 13.0]]


class Small(Block):
    In: Dim
    T: DType

    def build(self) -> None:
        self.up = Linear(self.In, self.In, self.T)

    @entry
    def run(self, x: Float[Tensor, "B In"]) -> Float[Tensor, "B In"]:
        return self.up(x)


def result(weights: Any, backend: str = "torch") -> list[list[float]]:
    found = nest.load(Small, backend=backend, weights=weights, In=2).run(ONES)
    values: list[list[float]] = (found.detach() if backend == "torch" else np.asarray(found)).tolist()
    return values


def told(weights: Any) -> str:
    with pytest.raises(BindingError) as caught:
        nest.load(Small, backend="reference", weights=weights, In=2)
    return str(caught.value)


@pytest.mark.parametrize(
    ("weight", "bias"),
    [
        (WEIGHT.tolist(), [5, 6]),
        (WEIGHT.astype(">f4"), BIAS.astype(">f8")),
        (WEIGHT[::-1, ::-1].copy()[::-1, ::-1], BIAS[::-1].copy()[::-1]),
        (WEIGHT.astype(np.longdouble), BIAS.astype(np.float16)),
    ],
    ids=["lists", "foreign byte order", "negative strides", "other widths"],
)
@pytest.mark.parametrize("backend", ["torch", "jax", "onnx", "reference"])
def test_arrays_as_numpy_has_them(weight: Any, bias: Any, backend: str) -> None:
    assert result({"up.weight": weight, "up.bias": bias}, backend) == RESULT


@pytest.mark.parametrize("backend", ["torch", "onnx"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_parameters_of_a_torch_module(dtype: str, backend: str) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 2)
    module.weight.data, module.bias.data = torch.from_numpy(WEIGHT), torch.from_numpy(BIAS)
    module = module.to(getattr(torch, dtype))
    weights = {f"up.{name}": value for name, value in module.named_parameters()}
    assert result(weights, backend) == RESULT


def test_8_bit_floats_of_a_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    tensors = {"up.weight": torch.from_numpy(WEIGHT), "up.bias": torch.from_numpy(BIAS)}
    stored = {name: tensor.to(torch.float8_e5m2) for name, tensor in tensors.items()}
    save_torch_file(stored, tmp_path / "x.safetensors")
    assert result(tmp_path / "x.safetensors") == result({n: s.float() for n, s in stored.items()})


@pytest.mark.parametrize("dtype", ["bool", "u1", "i8", "c8", "O"])
def test_another_kind_of_number(dtype: str) -> None:
    message = told({"up.weight": WEIGHT.astype(dtype), "up.bias": BIAS})
    assert message.endswith(f"parameter 'up.weight' is f32, and holds {np.dtype(dtype)} values")


def test_a_file_of_another_kind_of_number(tmp_path: Path) -> None:
    save_file(
        {"up.weight": WEIGHT.astype(np.int8), "up.bias": BIAS.astype(np.int8)}, tmp_path / "x.safetensors"
    )
    assert "parameter 'up.weight' is f32, and holds int8 values" in told(tmp_path / "x.safetensors")


def test_what_is_no_array_is_said_beside_the_rest() -> None:
    torch = pytest.importorskip("torch")
    message = told({"up.weight": torch.zeros(2, 2, device="meta"), 3: BIAS, "up.bais": BIAS})
    assert "parameter 'up.weight' cannot be read as an array of numbers (" in message
    assert "parameter 'up.bias' [2] is missing" in message
    assert "3 is no parameter." in message
    assert "'up.bais' is no parameter. Did you mean 'up.bias'?" in message


def test_a_file_with_other_names_than_a_class_has(tmp_path: Path) -> None:
    save_file({"weight": WEIGHT}, tmp_path / "x.safetensors")
    message = told(tmp_path / "x.safetensors")
    assert "parameter 'up.weight' [2, 2] is missing" in message
    assert "'weight' is no parameter" in message


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    save_file({"up.weight": WEIGHT}, tmp_path / "a.safetensors")
    save_file({"up.bias": BIAS}, tmp_path / "b.safetensors")
    index = {"weight_map": {"up.weight": "a.safetensors", "up.bias": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path


def test_shards_that_an_index_lists(shards: Path) -> None:
    assert result(shards) == result(shards / "model.safetensors.index.json") == RESULT


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"weight_map": {}}',
        '{"weight_map": [1]}',
        '{"weight_map": {"x": "../a.safetensors"}}',
        '{"weight_map": {"x": ["a"]}}',
        '{"weight_map": {"x": "/etc/passwd"}}',
        "[" * 100_000,
    ],
)
def test_an_index_that_is_none(shards: Path, text: str) -> None:
    (shards / "model.safetensors.index.json").write_text(text)
    with pytest.raises(WeightsError, match=r"The index .*index\.json cannot be read: .*Expected an object"):
        result(shards)


def test_a_shard_that_is_not_there(shards: Path) -> None:
    (shards / "b.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"b\.safetensors cannot be read: No such file"):
        result(shards)
