"""The ONNX folder: graphs that onnx's checker accepts, over one file of weights, described by `io.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import nest
from nest.errors import CallError
from nest.export.onnx.runtimes import OLDEST
from nest.layers import Block, Dim, Float32, Linear, Tensor, entry
from nest.weights import open_checkpoint

# What programs outside of nest are written against; a change of these is a new version of io.json.
NAMES = {
    "encode": (["mel"], ["result"]),
    "decode": (["tokens", "audio"], ["result"]),
    "listen": (["mel"], ["result"]),
    "prefill": (["tokens", "lengths"], ["result"]),
    "step": (["token", "pos"], ["result"]),
    "align": (["tokens"], ["result"]),
    "greedy": (
        ["tokens", "out", "end", "bias", "first_bias", "lengths"],
        ["result_0", "result_1", "result_2"],
    ),
    "hear": (
        ["mel", "tokens", "out", "end", "bias", "first_bias", "lengths"],
        ["result_0", "result_1", "result_2"],
    ),
}


class Driver:
    """Runs a folder by what its io.json says, as any program could."""

    def __init__(self, folder: Path, batch: int) -> None:
        self.folder = folder
        self.io = json.loads((folder / "io.json").read_text())
        sizes = {"Batch": batch, **self.io["largest"]}
        known = {s["state"]: s for g in self.io["graphs"].values() for s in g.get("states", [])}
        self.states = {
            n: np.zeros([sizes.get(a, a) for a in s["shape"]], s["dtype"]) for n, s in known.items()
        }

    def __call__(self, name: str, **inputs: Any) -> list[Any]:
        facts = self.io["graphs"][name]
        session = ort.InferenceSession(str(self.folder / facts["file"]), providers=["CPUExecutionProvider"])
        feed = {x["name"]: np.asarray(inputs.pop(x["name"]), x["dtype"]) for x in facts["inputs"]}
        assert not inputs
        states = facts.get("states", [])
        feed |= {s["input"]: self.states[s["state"]] for s in states if s["input"]}
        outputs = [x["name"] for x in facts["outputs"]]
        written = {s["output"]: s["state"] for s in states if s["output"]}
        results = session.run([*outputs, *written], feed)
        self.states.update(zip(written.values(), results[len(outputs) :], strict=True))
        return list(results[: len(outputs)])


@pytest.fixture(scope="module")
def folder(tiny: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("onnx") / "tiny"
    nest.save(tiny("reference"), made, "onnx")
    return made


def test_the_names_of_tensors_are_those_that_programs_know(folder: Path) -> None:
    io = json.loads((folder / "io.json").read_text())
    assert io["version"] == 1
    graphs = io["graphs"]
    assert (
        NAMES.items()
        <= {
            n: ([x["name"] for x in g["inputs"]], [x["name"] for x in g["outputs"]])
            for n, g in graphs.items()
        }.items()
    )
    assert graphs["step"]["inputs"] == [
        {"name": "token", "dtype": "int32", "shape": ["Batch", 1]},
        {"name": "pos", "dtype": "int32", "shape": ["Batch"]},
    ]
    assert graphs["step"]["outputs"] == [{"name": "result", "dtype": "float32", "shape": ["Batch", 97]}]
    assert graphs["step"]["states"][0] == {
        "state": "decoder_layers.0.self_k",
        "input": "past.decoder_layers.0.self_k",
        "output": "present.decoder_layers.0.self_k",
        "in_place": True,
        "batch_axis": 0,
        "dtype": "float32",
        "shape": ["Batch", 3, "Capacity", 8],
    }
    assert graphs["prefill"]["inputs"][1]["default"] == "S"
    assert graphs["prefill"]["rules"] == ["S <= Capacity", "S <= 17"]
    assert "states" not in graphs["hear"]
    assert io["largest"] == {"Capacity": 17}
    assert (io["opset"], io["ir_version"], io["onnxruntime"], io["weights"]) == (
        24,
        12,
        ">=1.25",
        "model.safetensors",
    )


def test_io_json_says_what_the_graphs_say(folder: Path) -> None:
    for name, facts in json.loads((folder / "io.json").read_text())["graphs"].items():
        graph = onnx.load(folder / facts["file"], load_external_data=False).graph
        states = facts.get("states", [])
        said = {x["name"]: x for x in (*facts["inputs"], *facts["outputs"])}
        said |= {s[side]: s for s in states for side in ("input", "output") if s[side]}
        values = [*graph.input, *graph.output]
        assert said.keys() == {v.name for v in values}, name
        for value in values:
            tensor = value.type.tensor_type
            axes = [d.dim_param or d.dim_value for d in tensor.shape.dim]
            assert axes == said[value.name]["shape"]
            assert onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name == said[value.name]["dtype"]


@pytest.mark.parametrize("opset", [17, 24])
def test_the_checker_accepts_every_graph(opset: int, tiny: Callable[..., Any], tmp_path: Path) -> None:
    nest.save(tiny("reference"), tmp_path, "onnx", opset=opset)
    graphs = sorted(tmp_path.glob("*.onnx"))
    assert {p.stem for p in graphs} >= NAMES.keys()
    for path in graphs:
        onnx.checker.check_model(str(path), full_check=True)
        assert [d.version for d in onnx.load(path, load_external_data=False).opset_import] == [opset]
    assert json.loads((tmp_path / "io.json").read_text())["onnxruntime"] == f">={OLDEST[opset]}"


def test_weights_are_stored_once(folder: Path, weights: dict[str, Any]) -> None:
    places: dict[str, set[Any]] = {}
    for path in folder.glob("*.onnx"):
        for tensor in onnx.load(path, load_external_data=False).graph.initializer:
            if tensor.external_data:
                places.setdefault(tensor.name, set()).add(
                    tuple((e.key, e.value) for e in tensor.external_data)
                )
            else:
                assert len(tensor.raw_data) <= 64, f"{tensor.name} is stored in {path.name}"
    assert places.keys() == weights.keys()
    extents = [dict(next(iter(p))) for p in places.values() if len(p) == 1]
    assert len(extents) == len(weights)
    assert {e["location"] for e in extents} == {"model.safetensors"}
    assert sum(int(e["length"]) for e in extents) == sum(a.nbytes for a in weights.values())
    # The head is tied: its one tensor is read as an embedding and as a matrix.
    step = onnx.load(folder / "step.onnx", load_external_data=False).graph
    readers = [n.op_type for n in step.node if "token_embedding" in n.input]
    assert sorted(readers) == ["Gather", "Gemm"]


def test_the_weights_are_a_safetensors_file_by_definition_path(folder: Path, weights: dict[str, Any]) -> None:
    stored = open_checkpoint(folder / "model.safetensors")
    assert all(np.array_equal(stored[path].array(), array) for path, array in weights.items())


@pytest.mark.parametrize("opset", [17, 23, 24])
def test_a_program_that_follows_io_json_gets_the_model_s_results(
    opset: int, tiny: Callable[..., Any], tmp_path: Path
) -> None:
    model = tiny("reference", precision="f64")
    nest.save(tiny("torch"), tmp_path, "onnx", opset=opset)
    run, session = Driver(tmp_path, batch=2), model.new_session(Batch=2)
    rng = np.random.default_rng(1)
    mel = rng.standard_normal((2, 10, 26)).astype(np.float32)
    prompt, lengths = rng.integers(0, 97, (2, 4)), [4, 2]

    def near(got: Any, want: Any) -> None:
        np.testing.assert_allclose(got, want, atol=2e-5 * np.abs(want).max())

    near(run("encode", mel=mel)[0], session.encode(mel))
    near(run("listen", mel=mel)[0], session.listen(mel))
    near(run("prefill", tokens=prompt, lengths=lengths)[0], session.prefill(prompt, lengths))
    for pos in range(3):
        token = rng.integers(0, 97, (2, 1))
        slots = np.add(lengths, pos)
        near(run("step", token=token, pos=slots)[0], session.step(token, slots))
    near(run("align", tokens=prompt)[0], session.align(prompt))
    near(run.states["decoder_layers.1.self_v"], session.state["decoder_layers.1.self_v"])


@pytest.mark.parametrize("opset", [17, 24])
def test_a_whole_decode_takes_and_gives_no_states(
    opset: int, tiny: Callable[..., Any], tmp_path: Path
) -> None:
    model = tiny("reference")
    nest.save(model, tmp_path, "onnx", opset=opset)
    run, session = Driver(tmp_path, batch=3), model.new_session(Batch=3)
    rng = np.random.default_rng(4)
    mel = rng.standard_normal((3, 10, 26)).astype(np.float32)
    zero = np.zeros(97, np.float32)
    inputs = {
        "mel": mel, "tokens": rng.integers(0, 97, (3, 3)), "lengths": [3, 1, 2], "out": np.zeros((3, 9)),
        "bias": zero, "first_bias": zero, "end": 5,
    }  # fmt: skip
    ids, counts, sums = run("hear", **inputs)
    want = session.hear(
        **{
            n: np.asarray(x, np.float32 if n in ("mel", "bias", "first_bias") else np.int32)
            for n, x in inputs.items()
        }
    )
    np.testing.assert_array_equal(ids, want[0])
    np.testing.assert_array_equal(counts, want[1])
    np.testing.assert_allclose(sums, want[2], atol=1e-3)
    session.listen(mel)
    run("listen", mel=mel)
    del inputs["mel"]
    np.testing.assert_array_equal(run("greedy", **inputs)[0], ids)


def test_half_precision_is_half_the_weights(tiny: Callable[..., Any], tmp_path: Path) -> None:
    nest.save(tiny("torch", T="f16"), tmp_path, "onnx")
    stored = open_checkpoint(tmp_path / "model.safetensors")
    assert {view.dtype for view in stored.values()} == {"f16"}
    mel = np.random.default_rng(0).standard_normal((1, 10, 26))
    states = Driver(tmp_path, batch=1)("encode", mel=mel)[0]
    assert states.dtype == np.float16
    np.testing.assert_allclose(states, tiny("reference").encode(mel.astype(np.float32)), atol=0.05)


def test_the_same_model_is_the_same_bytes(folder: Path, tiny: Callable[..., Any], tmp_path: Path) -> None:
    nest.save(tiny("torch"), tmp_path, "onnx")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        p.name: p.read_bytes() for p in folder.iterdir()
    }


def test_a_model_of_other_sizes_comes_without_a_task_s_files(folder: Path) -> None:
    assert "task" not in json.loads((folder / "io.json").read_text())
    assert {p.suffix for p in folder.iterdir()} == {".onnx", ".json", ".safetensors"}


class Plain(Block):
    D: Dim

    def build(self) -> None:
        self.proj = Linear(self.D, self.D, "f32")

    @entry
    def forward(self, x: Float32[Tensor, "B D"]) -> Float32[Tensor, "B D"]:
        return self.proj(x)


def test_a_model_of_a_class_is_written_too(tmp_path: Path) -> None:
    model = nest.load(Plain, backend="reference", weights=None, D=4)
    nest.save(model, tmp_path, "onnx")
    io = json.loads((tmp_path / "io.json").read_text())
    assert io["model"] == {"name": "Plain"}
    session = ort.InferenceSession(str(tmp_path / "forward.onnx"), providers=["CPUExecutionProvider"])
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], model.forward(x), atol=1e-6)


@pytest.mark.parametrize("opset", [16, 25])
def test_a_set_that_nest_does_not_write_is_refused(
    opset: int, tiny: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(
        CallError, match=f"nest writes ONNX in the operator sets 17 to 24; opset={opset} was given"
    ):
        nest.save(tiny("reference"), tmp_path / "out", "onnx", opset=opset)
    assert not (tmp_path / "out").exists()


def test_bf16_is_refused(tiny: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(
        CallError, match=r"whisper-tiny: ONNX Runtime has no kernels for bf16 .* dtype='f32' or dtype='f16'"
    ):
        nest.save(tiny("torch", T="bf16"), tmp_path, "onnx")
