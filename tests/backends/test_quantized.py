"""Quantized weights: every backend computes what the oracle makes of the same weights, and the fast plan stays near."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError
from nest.layers import Block, Dim, DType, Float, Tensor, entry, relu
from nest.layers.standard import Linear

_FRAMEWORKS = {"torch": "torch", "jax": "jax", "nnx": "flax", "onnx": "onnxruntime"}
BACKENDS = [
    pytest.param(
        name, marks=pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"no {module}")
    )
    for name, module in _FRAMEWORKS.items()
]


class Layer(Block):
    T: DType

    def build(self) -> None:
        self.up = Linear(64, 96, self.T)
        self.down = Linear(96, 64, self.T, bias=False)

    def forward(self, x: Float[Tensor, "B S 64"]) -> Float[Tensor, "B S 64"]:
        return x + self.down(relu(self.up(x)))


class Stack(Block):
    """Two parts, and a head much taller than wide."""

    T: DType
    Out: Dim = 512

    def build(self) -> None:
        self.encoder_layers = [Layer(self.T) for _ in range(2)]
        self.small = Linear(64, 8, self.T)
        self.head = Linear(64, self.Out, self.T)

    @entry
    def go(self, x: Float[Tensor, "B S 64"]) -> Float[Tensor, "B S Out"]:
        for layer in self.encoder_layers:
            x = layer(x)
        return self.head(x)

    @entry
    def few(self, x: Float[Tensor, "B S 64"]) -> Float[Tensor, "B S 8"]:
        return self.small(x)


def loaded(backend: str, quantize: Any = "int8", **options: Any) -> Any:
    return nest.load(Stack, backend=backend, weights=None, seed=1, quantize=quantize, **options)


def inputs() -> Any:
    return np.random.default_rng(0).standard_normal((2, 3, 64)).astype(np.float32)


CHOICES = ["int8", "int4", {"encoder": "int4", "head": "int8"}, {"encoder": "int8", "head": "int4"}]


@pytest.mark.parametrize("quantize", CHOICES, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_agree_with_the_oracle_over_the_same_weights(backend: str, quantize: Any) -> None:
    exact = np.asarray(loaded("reference", quantize, precision="f64").go(inputs()))
    model = loaded(backend, quantize)
    np.testing.assert_allclose(_numpy(model.go(inputs())), exact, rtol=1e-5, atol=1e-5)
    # The plan may round inputs to 8 bits too.
    fast = _numpy(model.new_session(plan="fast").call("go", [inputs()], {}))
    assert np.abs(fast - exact).max() < 0.02 * np.abs(exact).max()


@pytest.mark.parametrize("scheme", ["int8", "int4"])
def test_products_stay_near_those_of_the_weights_that_were_given(scheme: str) -> None:
    given = np.asarray(loaded("reference", None).go(inputs()))
    found = np.asarray(loaded("reference", {"encoder": scheme, "head": scheme}).go(inputs()))
    error = np.linalg.norm(found - given) / np.linalg.norm(given)
    low, high = {"int8": (0.001, 0.02), "int4": (0.02, 0.2)}[scheme]
    assert low < error < high


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision_and_quantized_weights_go_together(backend: str) -> None:
    exact = np.asarray(loaded("reference", precision="f64").go(inputs()))
    found = _numpy(loaded(backend, dtype="f16").go(inputs()))
    assert np.abs(found - exact).max() < 0.02 * np.abs(exact).max()


def test_a_model_says_what_became_of_each_part() -> None:
    (part,) = loaded("reference").quantization
    assert (part.part, part.scheme, part.matrices) == ("encoder", "int8", 4)
    assert part.bytes_before == 4 * 64 * 96 * 4
    assert part.bytes_after == 4 * 64 * 96 + 4 * (2 * 96 + 2 * 64)
    assert 0 < part.mean_error <= part.largest_error < 0.01
    assert str(part).startswith("encoder: 4 matrices in int8, 0.1 to 0.0 MB, changed by 0.")
    assert loaded("reference", None).quantization == ()


def test_what_is_not_named_stays_as_it_is() -> None:
    model = loaded("reference", {"head": "int8", "encoder": None})
    assert [p.part for p in model.quantization] == ["head"]
    assert {a.dtype.name for n, a in model.interpreter.params.items() if n.startswith("encoder")} == {
        "float32"
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("int3", "quantize= is 'int8' or 'int4', or None for what stays as it is; 'int3' was given."),
        (8, "quantize= is 'int8' or 'int4', None, or a mapping of parts to these; 8 was given."),
        (
            {"decoder": "int8"},
            "quantize= names the part 'decoder', which Stack does not have; its parts: encoder, head.",
        ),
    ],
)
def test_errors_say_what_is_possible(asked: Any, message: str) -> None:
    with pytest.raises(CallError) as error:
        loaded("reference", asked)
    assert str(error.value) == message


def test_rows_that_are_no_whole_groups_have_no_int4() -> None:
    with pytest.raises(
        CallError, match=r"The part 'encoder' of .* has no matrix for int4, whose rows are whole"
    ):
        nest.load(
            "whisper-tiny", backend="reference", weights=None, quantize={"encoder": "int4"},
            D=48, Heads=3, Inner=80, EncoderLayers=1, DecoderLayers=1, Vocab=97, MaxTokens=17,
        )  # fmt: skip


def test_products_of_one_input_on_onnx_round_it_once() -> None:
    pytest.importorskip("onnxruntime")
    model = nest.load(
        "smollm2-135m-instruct", backend="onnx", weights=None, quantize="int8",
        Vocab=64, D=64, HeadDim=32, Layers=1, Heads=2, KvHeads=1, Inner=96, MaxTokens=32, Capacity=32,
    )  # fmt: skip
    graph = model._planned("fast").lowered("step").model.graph
    found = [n.op_type for n in graph.all_nodes()]
    assert found.count("MatMulIntegerToFloat") == 7
    # Queries, keys and values are of one input, which is rounded once; so are the two of the gated layer.
    assert found.count("DynamicQuantizeLinear") == 4


def test_what_is_trained_or_spread_is_not_quantized() -> None:
    pytest.importorskip("jax")
    with pytest.raises(CallError, match="leave param_dtype= out"):
        loaded("jax", param_dtype="f32")


def test_a_torch_model_is_copied_with_its_weights() -> None:
    pytest.importorskip("torch")
    model = loaded("torch")
    np.testing.assert_array_equal(_numpy(copy.deepcopy(model).go(inputs())), _numpy(model.go(inputs())))
    assert {n for n, p in model.named_parameters() if not p.is_floating_point()} == set()


def test_a_quantized_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="was loaded with quantize=, and what is saved"):
        nest.save(loaded("reference"), tmp_path)


def test_a_quantized_entry_is_pickled() -> None:
    pytest.importorskip("torch")
    model = nest.load(
        "smollm2-135m-instruct", backend="torch", weights=None, quantize="int8",
        Vocab=64, D=64, HeadDim=32, Layers=1, Heads=2, KvHeads=1, Inner=96, MaxTokens=32, Capacity=32,
    )  # fmt: skip
    other = pickle.loads(pickle.dumps(model))
    assert {n: t.dtype for n, t in other.state_dict().items()} == {
        n: t.dtype for n, t in model.state_dict().items()
    }


def _numpy(x: Any) -> Any:
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)
