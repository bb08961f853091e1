"""`nest.save`: what was loaded or trained is written back, and opened by those who know nothing of nest."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError, InputError
from nest.layers import Block, Dim, Float32, Linear, Tensor, entry
from nest.registry import zoo_directory
from nest.weights import open_checkpoint

from .conftest import tiny_generics

BACKENDS = ("torch", "nnx", "jax", "onnx", "reference")


class Plain(Block):
    D: Dim

    def build(self) -> None:
        self.proj = Linear(self.D, self.D, "f32")

    @entry
    def forward(self, x: Float32[Tensor, "B D"]) -> Float32[Tensor, "B D"]:
        return self.proj(x)


def arrays(folder: Path) -> dict[str, Any]:
    return {name: view.array() for name, view in open_checkpoint(folder / "model.safetensors").items()}


@pytest.mark.parametrize("backend", BACKENDS)
def test_definition_paths_hold_what_was_loaded(
    backend: str, tiny: Callable[..., Any], weights: dict[str, Any], tmp_path: Path
) -> None:
    files = nest.save(tiny(backend), tmp_path / "out", format="safetensors")
    assert files == [tmp_path / "out" / "model.safetensors"]
    saved = arrays(tmp_path / "out")
    assert saved.keys() == weights.keys()
    assert all(np.array_equal(saved[path], weights[path]) for path in weights)


def test_every_backend_writes_the_same_bytes(tiny: Callable[..., Any], tmp_path: Path) -> None:
    for backend in BACKENDS:
        nest.save(tiny(backend, T="f16"), tmp_path / backend)
    first, *others = (
        {p.name: p.read_bytes() for p in sorted((tmp_path / backend).iterdir())} for backend in BACKENDS
    )
    assert {"model.safetensors", "config.json"} <= first.keys()
    assert all(other == first for other in others)
    assert json.loads(first["config.json"])["torch_dtype"] == "float16"


@pytest.mark.parametrize("backend", ["torch", "nnx", "jax"])
def test_bf16_is_written_as_it_is(
    backend: str, tiny: Callable[..., Any], weights: dict[str, Any], tmp_path: Path
) -> None:
    nest.save(tiny(backend, T="bf16"), tmp_path)
    path = "model.encoder.conv1.weight"
    saved = open_checkpoint(tmp_path / "model.safetensors")[path]
    assert saved.dtype == "bf16"
    np.testing.assert_allclose(saved.array().astype(np.float32), weights["conv1_weight"], rtol=2**-8)


@pytest.mark.reference
@pytest.mark.parametrize("backend", ["torch", "nnx"])
def test_a_changed_model_opens_in_the_reference_library(
    backend: str, tiny: Callable[..., Any], weights: dict[str, Any], tmp_path: Path
) -> None:
    import torch
    from transformers import WhisperForConditionalGeneration

    moved = {path: array * np.float32(1.5) for path, array in weights.items()}
    model = tiny(backend, weights=None)
    if backend == "torch":
        model.load_state_dict({path: torch.from_numpy(array) for path, array in moved.items()})
    else:
        from nest.backends.jax.nnx.model import variables

        for path, variable in variables(model):
            variable.set_value(moved[path])
    nest.save(model, tmp_path)
    library = WhisperForConditionalGeneration.from_pretrained(tmp_path)
    rng = np.random.default_rng(5)
    mel = rng.standard_normal((2, 10, 26)).astype(np.float32)
    ids = rng.integers(0, 97, (2, 7)).astype(np.int32)
    with torch.no_grad():
        expected = library(
            torch.from_numpy(mel), decoder_input_ids=torch.from_numpy(ids).long()
        ).logits.numpy()
    logits = model.new_session(Batch=2).numpy(model.decode(ids, model.encode(mel)))
    assert np.abs(logits - expected).max() <= 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize("format", ["hf", "safetensors"])
def test_what_was_saved_is_loaded_again(
    format: str, tiny: Callable[..., Any], weights: dict[str, Any], tmp_path: Path
) -> None:
    nest.save(tiny("torch"), tmp_path, format)
    for place in (tmp_path, str(tmp_path / "model.safetensors")):
        again = tiny("torch", weights=place)
        assert all(np.array_equal(p.numpy(), weights[path]) for path, p in again.state_dict().items())


def test_a_model_of_a_class_is_loaded_again(tmp_path: Path) -> None:
    model = nest.load(Plain, backend="reference", weights=None, D=4)
    nest.save(model, tmp_path, "safetensors")
    x = np.ones((1, 4), np.float32)
    again = nest.load(Plain, backend="reference", weights=tmp_path, D=4)
    np.testing.assert_array_equal(again.forward(x), model.forward(x))


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """An entry whose checkpoint stores a matrix transposed, and two biases as one tensor."""
    folder = tmp_path / "packed"
    shutil.copytree(zoo_directory() / "whisper-tiny", folder)
    manifest = (folder / "nest.toml").read_text(encoding="utf-8")
    (folder / "nest.toml").write_text(manifest.replace('name = "whisper-tiny"', 'name = "packed"'))
    bindings = json.loads((folder / "bindings.json").read_text())
    bindings["bindings"] |= {
        "token_embedding": {"op": "transpose", "of": "wte", "perm": [1, 0]},
        "conv1_bias": {"op": "slice", "of": "biases", "axis": 0, "start": 0, "stop": "D"},
        "conv2_bias": {"op": "slice", "of": "biases", "axis": 0, "start": "D", "stop": "2 * D"},
    }
    del bindings["ties"]
    (folder / "bindings.json").write_text(json.dumps(bindings))
    return folder


def test_transposed_and_packed_tensors_are_restored(
    packed: Path, weights: dict[str, Any], tmp_path: Path
) -> None:
    options = {"backend": "reference", "trust_source": True, **tiny_generics()}
    nest.save(nest.load(packed, weights=weights, **options), tmp_path / "out")
    saved = arrays(tmp_path / "out")
    np.testing.assert_array_equal(saved["wte"], weights["token_embedding"].T)
    np.testing.assert_array_equal(
        saved["biases"], np.concatenate([weights["conv1_bias"], weights["conv2_bias"]])
    )
    again = nest.load(packed, weights=tmp_path / "out", **options)
    np.testing.assert_array_equal(again.interpreter.params["conv2_bias"], weights["conv2_bias"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, while it compiles
def test_a_compiled_torch_module_is_saved_as_what_it_wraps(tiny: Callable[..., Any], tmp_path: Path) -> None:
    import torch

    model = tiny("torch")
    nest.save(torch.compile(model), tmp_path / "compiled", "safetensors")
    nest.save(model, tmp_path / "plain", "safetensors")
    assert (tmp_path / "compiled" / "model.safetensors").read_bytes() == (
        tmp_path / "plain" / "model.safetensors"
    ).read_bytes()


def test_the_publisher_s_files_go_before_what_is_known_here(
    tiny: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nest.export import companions

    published = {
        "config.json": {"d_model": 384, "dropout": 0.25, "dtype": "float32"},
        "generation_config.json": {"x": 1},
    }
    for name, content in published.items():
        (tmp_path / name).write_text(json.dumps(content))
    monkeypatch.setattr(
        companions, "pinned_file", lambda entry, name: tmp_path / name if name in published else None
    )
    nest.save(tiny("reference"), tmp_path / "resized")
    written = json.loads((tmp_path / "resized" / "config.json").read_text())
    # A size of the model's own stays: the publisher's file is of another model.
    assert (written["d_model"], written["vocab_size"], written["torch_dtype"]) == (24, 97, "float32")
    assert "dtype" not in written
    nest.save(nest.load("whisper-tiny", backend="reference", weights=None), tmp_path / "same")
    assert json.loads((tmp_path / "same" / "config.json").read_text())["dropout"] == 0.25
    assert json.loads((tmp_path / "same" / "generation_config.json").read_text())["x"] == 1


def test_files_that_are_there_are_replaced_and_others_left(tiny: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "model.safetensors").write_text("old")
    nest.save(tiny("reference"), tmp_path, "safetensors")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert arrays(tmp_path)
    assert [p.name for p in tmp_path.parent.iterdir() if p.name.startswith(f".{tmp_path.name}")] == []


def test_a_failure_leaves_nothing_behind(
    tiny: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nest.export import checkpoint

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_companions", full)
    with pytest.raises(InputError, match=r"out cannot be written: No space left on device\."):
        nest.save(tiny("reference"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tiny: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file; give the name of a folder"):
        nest.save(tiny("reference"), tmp_path / "file")


def test_an_unknown_format_is_answered_by_the_nearest(tiny: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(
        CallError, match="There is no format 'onx'; nest writes hf, safetensors, onnx, stablehlo"
    ) as error:
        nest.save(tiny("reference"), tmp_path, "onx")
    assert "'onnx'" in str(error.value).partition("stablehlo.")[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"opset": 17}, "opset= belongs to the format 'onnx', and the format is 'hf'."),
        ({"platforms": ["cpu"]}, "platforms= belongs to the format 'stablehlo', and the format is 'hf'."),
    ],
)
def test_an_option_of_another_format_is_refused(
    options: dict[str, Any], words: str, tiny: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(CallError) as error:
        nest.save(tiny("reference"), tmp_path, **options)
    assert str(error.value) == words


def test_what_is_not_a_model_is_refused(tmp_path: Path) -> None:
    import torch

    with pytest.raises(
        CallError, match=r"What nest\.load returns can be saved, of any backend; Linear is no such model"
    ):
        nest.save(torch.nn.Linear(2, 2), tmp_path)


def test_a_model_that_was_changed_by_hand_is_refused(tiny: Callable[..., Any], tmp_path: Path) -> None:
    import torch

    model = copy.deepcopy(tiny("torch"))
    model.extra = torch.nn.Linear(2, 2)
    model.conv1_bias = torch.nn.Parameter(torch.zeros(3))
    with pytest.raises(
        CallError, match=r"was changed.*'extra.weight' is no parameter.*'conv1_bias' is \[3\], and"
    ):
        nest.save(model, tmp_path)


def test_a_model_of_a_class_has_no_publisher(tmp_path: Path) -> None:
    model = nest.load(Plain, backend="reference", weights=None, D=4)
    with pytest.raises(
        CallError, match="Plain was built from a class, so nothing says how a checkpoint names"
    ):
        nest.save(model, tmp_path / "hf")
    nest.save(model, tmp_path / "own", "safetensors")
    assert arrays(tmp_path / "own").keys() == {"proj.weight", "proj.bias"}


def test_two_formats_are_not_mixed_in_one_folder(tmp_path: Path) -> None:
    model = nest.load("whisper-tiny", backend="reference", weights=None, **tiny_generics())
    nest.save(model, tmp_path / "out", format="hf")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(
        InputError, match=r"out holds another export \(config\.json\), whose model\.safetensors this"
    ):
        nest.save(model, tmp_path / "out", format="safetensors")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    nest.save(model, tmp_path / "out", format="hf")
