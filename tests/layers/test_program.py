"""What a definition becomes: functions traced once, types in the author's spelling, rules, states, text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nest import layers
from nest.ir import Program, inspect_text, parameters, program_text, states
from nest.ir.inventory import default_capacity
from nest.ir.passes import eliminate_dead_code, inline
from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Float,
    Int32,
    Linear,
    State,
    Tensor,
    block_array,
    elaborate,
    entry,
)
from nest.loading import program_of
from nest.registry import find

GOLDEN = Path(__file__).parent / "golden"
LARGE = {
    "Mels": 128, "D": 1280, "Heads": 20, "Inner": 5120, "EncoderLayers": 32, "DecoderLayers": 32, "Vocab": 51866,
}  # fmt: skip


@pytest.fixture(scope="module")
def whisper() -> Program:
    return program_of("whisper-tiny")


def check_golden(name: str, text: str) -> None:
    """Compare with a file under golden/; run with NEST_UPDATE_GOLDEN=1 to accept a change, and read its diff."""
    import os

    path = GOLDEN / name
    if os.environ.get("NEST_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_the_program_of_whisper_tiny_as_text(whisper: Program) -> None:
    check_golden("whisper-tiny.program.txt", program_text(whisper))


def test_whisper_tiny_inspected(whisper: Program) -> None:
    check_golden("whisper-tiny.inspect.txt", inspect_text(whisper))


def test_the_torch_source_of_whisper_tiny(whisper: Program) -> None:
    from nest.backends.torch.source import torch_source

    check_golden("whisper-tiny.torch.py.txt", torch_source(whisper))


def test_the_entries_of_whisper_print_as_they_are_written(whisper: Program) -> None:
    assert {n: str(f.signature) for n, f in whisper.entries.items()} == {
        "encode": "<B>(mel: T[B, Mels, Frames]) -> T[B, (Frames-1)//2+1, D]",
        "decode": "<B, S, A>(tokens: i32[B, S], audio: T[B, A, D]) -> T[B, S, Vocab] where S <= MaxTokens",
        "listen": "(mel: T[Batch, Mels, Frames]) -> T[Batch, (Frames-1)//2+1, D]",
        "prefill": "<S>(tokens: i32[Batch, S], lengths: i32[Batch] = S) -> T[Batch, Vocab] "
        "where S <= Capacity, S <= MaxTokens",
        "step": "(token: i32[Batch, 1], pos: i32[Batch]) -> T[Batch, Vocab]",
        "align": "<S>(tokens: i32[Batch, S]) -> f32[Batch, Aligned, S, Audio] where S <= MaxTokens",
    }


def test_definition_paths_are_those_of_the_card(whisper: Program) -> None:
    import json

    bindings = json.loads((Path(__file__).parents[1] / "data" / "card" / "bindings.json").read_text())
    assert set(parameters(whisper)) == set(bindings)


def test_a_large_model_has_the_functions_of_a_small_one() -> None:
    """Blocks are traced once for each kind, so that depth costs construction alone."""
    small, large = program_of("whisper-tiny"), program_of("whisper-tiny", **LARGE)
    assert [f.name for f in small.functions()] == [f.name for f in large.functions()]
    assert len(large.root.distinct()) == len(small.root.distinct())
    assert len(parameters(large)) == 1259  # as in the published checkpoint of that size


def test_states_depend_on_the_session(whisper: Program) -> None:
    specs = states(whisper)
    assert len(specs) == 16
    cache = specs["decoder_layers.3.self_k"]
    assert cache.bound({"Batch": 2, "Capacity": 100}) == (2, 6, 100, 64)
    assert specs["decoder_layers.0.cross_v"].bound({"Batch": 2, "Capacity": 1}) == (2, 6, 1500, 64)
    assert default_capacity(whisper) == 448


def test_inlining_gives_one_flat_function_in_the_root_s_symbols(whisper: Program) -> None:
    flat = inline(whisper, "step")
    assert not [n for n in flat.nodes if n.op == "call"]
    assert len([n for n in flat.nodes if n.op == "update"]) == 8
    known = {*whisper.root.generics, "Batch", "Capacity"}
    assert {s for n in flat.nodes for v in n.outputs for d in v.type.shape for s in d.symbols()} <= known
    paths = [n.attrs["path"] for n in flat.nodes if n.op == "param"]
    assert len(paths) == len(set(paths))


class Dead(Block):
    D: Dim
    T: DType

    def build(self) -> None:
        self.fc = Linear(self.D, self.D, self.T)
        self.cache = State("Batch Capacity D", self.T, write_axis=1)

    @entry
    def go(self, x: Float[Tensor, "Batch N D"]) -> Float[Tensor, "Batch N D"]:
        self.fc.forward(x)
        self.cache.update(x * 2.0, 0)
        return -x


def test_dead_code_goes_and_writes_stay() -> None:
    flat = inline(elaborate(Dead, D=4, T="f32"), "go")
    assert eliminate_dead_code(flat) == 3
    assert [n.op for n in flat.nodes] == ["mul", "update", "neg"]


class Windowed(Block):
    D: Dim
    T: DType
    window: layers.Static[int]

    def build(self) -> None:
        self.fc = Linear(self.D, self.D, self.T)

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        h = self.fc.forward(x).reshape(x.shape[0], 1, *x.shape[1:])
        out = layers.attention(h, h, h, causal=True, window=self.window)
        return out.reshape(*x.shape)


class Alternating(Block):
    D: Dim
    Layers: Dim
    T: DType

    def build(self) -> None:
        self.layers = block_array(self.Layers, lambda i: Windowed(self.D, self.T, 2 if i % 2 else 5))

    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        for layer in self.layers:
            x = layer.forward(x)
        return x


def test_layers_that_alternate_stay_one_loop() -> None:
    from nest.backends.torch.source import torch_source

    program = elaborate(Alternating, D=4, Layers=4, T="f32")
    assert len([b for b in program.root.distinct() if b.name == "Windowed"]) == 2
    source = torch_source(program)
    assert "for layer in self.layers:\n            x = layer(x)" in source
    assert "class Windowed(" in source
    assert "class Windowed2(" in source


class Residual(Block):
    """A loop that also uses what it started from, which does not fold."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.layers = [Linear(self.D, self.D, self.T) for _ in range(3)]

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        y = x
        for layer in self.layers:
            y = layer.forward(y) + x
            x = x * 2.0
        return y - x


@pytest.mark.parametrize("root", [Residual, Alternating])
def test_generated_source_computes_what_the_program_says(root: type[Block]) -> None:
    import numpy as np

    from nest.loading import load

    generics: dict[str, Any] = {"D": 4} if root is Residual else {"D": 4, "Layers": 4}
    shape = (3, 4) if root is Residual else (2, 7, 4)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    exact = load(root, backend="reference", precision="f64", weights=None, **generics).go(x)
    got = load(root, backend="torch", weights=None, **generics).go(x)
    np.testing.assert_allclose(got.detach().numpy(), exact, atol=1e-5)


def test_dtype_is_a_generic() -> None:
    program = elaborate(Dead, D=4, T="bf16")
    assert {s.dtype for s in parameters(program).values()} == {"bf16"}
    assert {s.dtype for s in states(program).values()} == {"bf16"}


class Ruled(Block):
    D: Dim
    T: DType

    def build(self) -> None:
        self.require(Capacity <= self.D)

    @entry
    def go(self, x: Int32[Tensor, "B S"]) -> Int32[Tensor, "B S"]:
        self.require(x.shape[1] <= self.D)
        return x


def test_rules_of_a_method_are_part_of_its_signature() -> None:
    assert str(elaborate(Ruled, D=4, T="f32").entries["go"].signature).endswith("where S <= D")


def test_elaborations_share_nothing() -> None:
    first, second = program_of("whisper-tiny"), program_of("whisper-tiny")
    assert first.root is not second.root
    assert program_text(first) == program_text(second)


def test_the_definition_of_an_entry_is_found_by_both() -> None:
    assert find("whisper-tiny.en").definition() is find("whisper-tiny").definition()


class Stem(Block):
    D: Dim
    T: DType

    def build(self) -> None:
        self.line = layers.Conv1d(self.D, self.D, self.T, kernel=3, stride=2, padding=1)
        self.plane = layers.Conv2d(self.D, self.D, self.T, kernel=3, padding=1, groups=2)
        self.norm = layers.GroupNorm(self.D, self.T, groups=2)
        self.table = layers.Embedding(9, self.D, self.T)
        self.scale = layers.RMSNorm(self.D, self.T)

    @entry
    def go(
        self, x: Float[Tensor, "B D L"], y: Float[Tensor, "B D H W"], ids: Int32[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B D (L-1)//2+1"], Float[Tensor, "B D H W"], Float[Tensor, "B N D"]]:
        return self.line(x), self.norm(self.plane(y)), self.scale(self.table(ids))


@pytest.mark.parametrize("backend", ["torch", "jax", "nnx", "onnx"])
def test_the_standard_layers(backend: str) -> None:
    import numpy as np

    from nest.loading import load

    rng = np.random.default_rng(0)
    inputs = (
        rng.standard_normal((2, 4, 11)).astype(np.float32),
        rng.standard_normal((2, 4, 5, 6)).astype(np.float32),
        rng.integers(0, 9, (2, 3)).astype(np.int32),
    )
    exact = load(Stem, backend="reference", precision="f64", weights=None, D=4).go(*inputs)
    for got, want in zip(load(Stem, backend=backend, weights=None, D=4).go(*inputs), exact, strict=True):
        got = got.detach() if backend == "torch" else got
        np.testing.assert_allclose(np.asarray(got), want, atol=1e-5)
