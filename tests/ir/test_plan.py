"""Plans: the fast one computes what the definition says, over parameters that are made of the definition's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.backends.packing import Packer
from nest.backends.reference.model import build
from nest.errors import CallError
from nest.ir import Program, parameters, plan, states
from nest.ir.passes import flatten
from nest.ir.program import Function
from nest.layers import (
    Block,
    Dim,
    DType,
    Float,
    Int32,
    LayerNorm,
    Linear,
    Param,
    State,
    Tensor,
    attention,
    block_array,
    elaborate,
    entry,
    linear,
    merge_heads,
    split_heads,
    take,
    take_along,
)
from nest.loading import load

PACKER = Packer(
    concat=lambda parts, axis: np.concatenate(list(parts), axis),
    transpose=np.transpose,
    zeros=lambda shape, dtype: np.zeros(shape),
)


class Attention(Block):
    """Queries, keys without a bias, and values of one input; a cache inside the layer's child."""

    D: Dim
    Heads: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.q = Linear(self.D, self.D, self.T)
        self.k = Linear(self.D, self.D, self.T, bias=False)
        self.v = Linear(self.D, self.D, self.T)
        self.out = Linear(self.D, self.D, self.T)
        self.keys = State("Batch Heads 8 D//Heads", self.T, write_axis=2)

    def forward(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        k = split_heads(self.k(x), self.Heads)
        self.keys.update(k, 0)
        attended = attention(
            split_heads(self.q(x), self.Heads), k, split_heads(self.v(x), self.Heads), causal=True
        )
        return self.out(merge_heads(attended))


class Layer(Block):
    """What an array holds."""

    D: Dim
    Heads: Dim
    T: DType

    def build(self) -> None:
        self.norm = LayerNorm(self.D, self.T)
        self.attend = Attention(self.D, self.Heads, self.T)

    def forward(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        return x + self.attend(self.norm(x))


class Stack(Block):
    """An array inside a plain child."""

    D: Dim
    Heads: Dim
    Layers: Dim
    T: DType

    def build(self) -> None:
        self.layers = block_array(self.Layers, lambda i: Layer(self.D, self.Heads, self.T))

    def forward(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        for layer in self.layers:
            x = layer(x)
        return x


class Model(Block):
    """A decoder that computes its head for all positions, and then gives one."""

    D: Dim
    Heads: Dim
    Layers: Dim
    Vocab: Dim
    T: DType

    def build(self) -> None:
        self.table = Param("Vocab D", self.T)
        self.stack = Stack(self.D, self.Heads, self.Layers, self.T)
        self.norm = LayerNorm(self.D, self.T)

    @entry
    def last(
        self, tokens: Int32[Tensor, "Batch S"], lengths: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        B = tokens.shape[0]
        logits = linear(self.norm(self.stack(take(self.table, tokens))), self.table)
        return take_along(logits, (lengths - 1).reshape(B, 1, 1), axis=1).reshape(B, self.Vocab)


SIZES: dict[str, Any] = {"D": 12, "Heads": 3, "Layers": 2, "Vocab": 101, "T": "f32"}


@pytest.fixture(scope="module")
def program() -> Program:
    return elaborate(Model, **SIZES)


def drawn(program: Program) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {path: rng.standard_normal(spec.shape) for path, spec in parameters(program).items()}


def both(program: Program) -> tuple[Any, Any]:
    """A definition and its fast plan on the f64 oracle, over the same parameters."""
    made, params = plan(program, "fast"), drawn(program)
    assert made.params is not None
    packed = PACKER.packed(made.params, params.__getitem__)
    return build(program, params, precision="f64"), build(made.program, packed, precision="f64")


def ops(function: Function, op: str) -> list[Any]:
    return [node for node in function.nodes if node.op == op]


def test_exact_is_the_program_itself(program: Program) -> None:
    made = plan(program)
    assert made.program is program
    assert made.params is None


def test_a_plan_that_there_is_not(program: Program) -> None:
    with pytest.raises(CallError, match=r"There is no plan 'quick'; nest has exact, fast\."):
        plan(program, "quick")


def test_the_fast_plan_gives_what_the_definition_gives(program: Program) -> None:
    exact, fast = both(program)
    tokens, lengths = np.array([[3, 100, 0, 7], [1, 2, 0, 0]], np.int32), np.array([4, 2], np.int32)
    a, b = (model.new_session(Batch=2) for model in (exact, fast))
    np.testing.assert_allclose(b.last(tokens, lengths), a.last(tokens, lengths), rtol=0, atol=1e-10)
    assert a.state_dict().keys() == b.state_dict().keys()
    for path, state in a.state_dict().items():
        np.testing.assert_allclose(b.state_dict()[path], state, rtol=0, atol=1e-11, err_msg=path)


def test_what_parameters_are_made_of(program: Program) -> None:
    made = plan(program, "fast")
    assert made.params is not None
    texts = dict(line.split(" = ") for line in str(made.params).splitlines())
    assert texts.keys() == parameters(made.program).keys()
    layer = "stack.layers.1"
    assert texts[f"{layer}.attend_q_k_v_weight"] == (
        f"concat({layer}.attend.q.weight, {layer}.attend.k.weight, {layer}.attend.v.weight, axis=0)"
    )
    assert texts[f"{layer}.attend_q_k_v_bias"] == (
        f"concat({layer}.attend.q.bias, zeros(12, f32), {layer}.attend.v.bias, axis=0)"
    )
    assert texts[f"{layer}.attend_out_weight"] == f"{layer}.attend.out.weight"
    assert texts["table_columns"] == "table.transpose(1, 0)"
    assert texts["norm_weight"] == "norm.weight"


def test_every_parameter_of_the_definition_is_used_once(program: Program) -> None:
    made = plan(program, "fast")
    assert made.params is not None
    used = [name for expression in made.params.expressions.values() for name in expression.sources()]
    assert sorted(used) == sorted(parameters(program))


def test_states_keep_their_paths(program: Program) -> None:
    assert states(plan(program, "fast").program) == states(program)


def test_a_head_is_computed_for_the_positions_that_are_given(program: Program) -> None:
    function = plan(program, "fast").program.entries["last"]
    (head,) = ops(function, "linear")
    assert [str(d) for d in head.outputs[0].type.shape] == ["Batch", "1", "Vocab"]
    (pick,) = ops(function, "take_along")
    assert [str(d) for d in pick.outputs[0].type.shape] == ["Batch", "1", "D"]


def test_one_product_for_projections_of_one_input(program: Program) -> None:
    layer = next(b for b in plan(program, "fast").program.root.distinct() if b.name == "Layer")
    (forward,) = layer.functions.values()
    assert [node.inputs[1].node.attrs["path"][0] for node in ops(forward, "linear")] == [
        "attend_q_k_v_weight",
        "attend_out_weight",
    ]


def test_what_is_used_apart_is_not_packed() -> None:
    class Two(Block):
        D: Dim
        T: DType

        def build(self) -> None:
            self.a = Linear(self.D, self.D, self.T)
            self.b = Linear(self.D, self.D, self.T)

        @entry
        def together(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
            return self.a(x) * self.b(x)

        @entry
        def alone(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
            return self.a(x)

    program = elaborate(Two, D=4, T="f32")
    assert list(parameters(plan(program, "fast").program)) == ["a_weight", "a_bias", "b_weight", "b_bias"]
    exact, fast = both(program)
    x = np.ones((2, 4))
    np.testing.assert_allclose(fast.together(x), exact.together(x), atol=1e-12)


def test_a_table_that_is_also_read_otherwise_stays_as_it_is() -> None:
    class Tied(Block):
        D: Dim
        Vocab: Dim
        T: DType

        def build(self) -> None:
            self.table = Param("Vocab D", self.T)

        @entry
        def head(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B Vocab"]:
            return linear(x, self.table)

        @entry
        def doubled(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "Vocab D"]:
            return self.table * 2.0

    assert list(parameters(plan(elaborate(Tied, D=3, Vocab=50, T="f32"), "fast").program)) == ["table"]


def test_layers_are_flattened_once_for_all_of_their_kind(program: Program) -> None:
    flat, _ = flatten(program)
    assert [b.name for b in flat.root.distinct()] == ["Attention", "Layer", "Stack", "Model"]


TINY: dict[str, Any] = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 101,
    "MaxTokens": 16,
}  # fmt: skip


@pytest.mark.parametrize("name", ["encode", "decode", "align", "greedy", "sample_top", "hear"])
def test_whisper_by_the_fast_plan(name: str) -> None:
    exact, fast = both(load("whisper-tiny", backend="reference", weights=None, **TINY).program)
    rng = np.random.default_rng(0)
    mel, tokens = rng.standard_normal((2, 5, 30)), np.array([[3, 100, 1], [7, 2, 0]], np.int32)
    arguments: dict[str, Any] = {
        "encode": {"mel": mel},
        "decode": {"tokens": tokens, "audio": rng.standard_normal((2, 7, 12))},
        "align": {"tokens": tokens},
        "greedy": {"tokens": tokens, "out": np.zeros((2, 6), np.int32), "end": -1},
        "sample_top": {
            "tokens": tokens,
            "uniforms": rng.uniform(size=(5, 2)),
            "end": -1,
            "mass": np.full(2, 0.9),
        },
        "hear": {"mel": mel, "tokens": tokens, "out": np.zeros((2, 6), np.int32), "end": 5},
    }[name]
    found = []
    for model in (exact, fast):
        session = model.new_session(Batch=2)
        session.listen(mel)
        result = getattr(session, name)(**arguments)
        found.append(result if isinstance(result, tuple) else (result,))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-9)


class Alike(Block):
    """Parameters whose flattened names are the same text."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.head = Linear(self.D, self.D, self.T)
        self.head_bias = Param("D", self.T)
        self.head_weight = Param("D D", self.T)

    @entry
    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return linear(self.head(x), self.head_weight, self.head_bias)


def test_parameters_whose_names_join_to_the_same_text_stay_apart() -> None:
    program = elaborate(Alike, D=3, T="f32")
    _, paths = flatten(program)
    assert paths == {
        "head_bias": "head_bias",
        "head_weight": "head_weight",
        "head_weight_": "head.weight",
        "head_bias_": "head.bias",
    }
    rng = np.random.default_rng(0)
    params = {
        path: rng.standard_normal(spec.shape).astype(np.float32) for path, spec in parameters(program).items()
    }
    x = rng.standard_normal((2, 3)).astype(np.float32)
    inner = x @ params["head.weight"].T + params["head.bias"]
    right = inner @ params["head_weight"].T + params["head_bias"]
    for name in ("exact", "fast"):
        model = load(Alike, backend="torch", weights=params, D=3, T="f32")
        np.testing.assert_allclose(model.new_session(plan=name).forward(x).detach().numpy(), right, rtol=1e-5)
