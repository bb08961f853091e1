"""What `nest.load` returns on torch is a module: it compiles, copies, trains, moves and saves like any other."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nest
from nest.errors import CallError, DefinitionError
from nest.layers import Block, Dim, DType, Float, Linear, State, Tensor, elaborate, entry

SMALL = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 2, "Vocab": 17,
    "MaxTokens": 16,
}  # fmt: skip


@pytest.fixture
def model() -> Any:
    return nest.load("whisper-tiny", backend="torch", weights=None, seed=2, **SMALL)


@pytest.fixture
def mel() -> torch.Tensor:
    return torch.randn(2, 5, 30, generator=torch.Generator().manual_seed(0))


def test_it_is_a_module_with_definition_paths(model: Any) -> None:
    assert isinstance(model, torch.nn.Module)
    names = dict(model.named_parameters())
    assert names.keys() == model.state_dict().keys()
    assert {"conv1_weight", "encoder_layers.1.self_attn.q_proj.weight", "decoder_norm.bias"} <= names.keys()
    assert isinstance(model.encoder_layers[0].mlp.fc1, torch.nn.Linear)


def test_it_compiles(model: Any, mel: torch.Tensor) -> None:
    compiled = torch.compile(model.encode, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(mel), model.encode(mel))


def test_it_trains_through_its_uncached_entries(model: Any, mel: torch.Tensor) -> None:
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        logits = model.decode(tokens, model.encode(mel))
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None for n, p in model.named_parameters())
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 2


def test_sessions_are_no_part_of_copies(model: Any, mel: torch.Tensor) -> None:
    model.listen(mel[:1])
    first = model.prefill([[1, 2]])
    copied, pickled = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for other in (copied, pickled):
        assert type(other).__name__ == "Model"
        assert other.token_embedding.data_ptr() != model.token_embedding.data_ptr()
        other.listen(mel[:1])
        torch.testing.assert_close(other.prefill([[1, 2]]), first)
    with torch.no_grad():
        copied.token_embedding.zero_()
    torch.testing.assert_close(model.prefill([[1, 2]]), first)


def test_stateful_entries_keep_no_graph(model: Any, mel: torch.Tensor) -> None:
    assert not model.listen(mel[:1]).requires_grad
    assert model.encode(mel).requires_grad


def test_a_state_dict_goes_round(model: Any, mel: torch.Tensor, tmp_path: Path) -> None:
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other = nest.load("whisper-tiny", backend="torch", weights=None, seed=9, **SMALL)
    other.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    torch.testing.assert_close(other.encode(mel), model.encode(mel))


def test_half_moves_the_module_and_its_inputs(model: Any, mel: torch.Tensor) -> None:
    half = nest.load("whisper-tiny", backend="torch", weights=None, seed=2, dtype="bf16", **SMALL)
    assert half.token_embedding.dtype == torch.bfloat16
    states = half.encode(mel)
    assert states.dtype == torch.bfloat16
    torch.testing.assert_close(states.float(), model.encode(mel), atol=0.1, rtol=0.1)
    half.listen(mel[:1])
    assert half.prefill([[1, 2]]).dtype == torch.bfloat16


def test_tracebacks_show_the_generated_line(model: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        model.nest_methods["encode"](model, torch.zeros(1, 4, 30))
    frames = [f.path for f in caught.traceback if "generated" in str(f.path)]
    assert frames
    assert "F.conv1d" in Path(frames[0]).read_text(encoding="utf-8")


class Named(Block):
    """Variables that are called as what generated source needs."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.F = Linear(self.D, self.D, self.T)
        self.lines = [Linear(self.D, self.D, self.T) for _ in range(2)]

    @entry
    def go(self, state: Float[Tensor, "B D"], nn: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        B = state * 2.0
        F = self.F.forward(B)
        torch, D = F + nn, nn * 3.0
        nn, state = state + torch, nn - B
        for line in self.lines:
            state = line.forward(state) * D
        return state + nn.reshape(*nn.shape) * torch


def test_names_that_would_hide_what_the_source_needs() -> None:
    program = elaborate(Named, D=4, T="f32")
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
    exact = nest.load(Named, backend="reference", precision="f64", weights=None, D=4).go(x, y)
    got = nest.load(Named, backend="torch", weights=None, D=4)
    np.testing.assert_allclose(got.go(x, y).detach().numpy(), exact, atol=1e-5, err_msg=got.source)
    assert program.entries.keys() == {"go"}


class Mlp(Block):
    D: Dim
    T: DType

    def build(self) -> None:
        self.fc = Linear(self.D, self.D, self.T)

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return self.fc.forward(x)


def test_a_model_of_a_class_is_copied_too() -> None:
    model = nest.load(Mlp, backend="torch", weights=None, D=4)
    other = copy.deepcopy(model)
    x = torch.ones(2, 4)
    torch.testing.assert_close(other.go(x), model.go(x))
    assert other.fc.weight is not model.fc.weight
    with pytest.raises(CallError, match="was built from a class and cannot be pickled"):
        pickle.dumps(model)


def test_what_cannot_be_done_says_so(model: Any) -> None:
    with pytest.raises(
        CallError, match="has no entry 'forward', so the model itself cannot be called; its entr"
    ):
        model(torch.zeros(1, 5, 30))
    with pytest.raises(CallError, match="torch cannot use device='gpu' here"):
        nest.load("whisper-tiny", backend="torch", weights=None, device="gpu", **SMALL)
    with pytest.raises(CallError, match=r"run_entry takes the arguments of 'encode' in a list"):
        model.run_entry("encode", np.zeros((1, 5, 30), np.float32))
    with pytest.raises(CallError, match="weights=False means nothing"):
        nest.load("whisper-tiny", backend="torch", weights=False, **SMALL)


def test_dtypes_by_the_names_of_frameworks() -> None:
    for name in ("f16", "float16", torch.float16, np.float16):
        model = nest.load("whisper-tiny", backend="torch", weights=None, dtype=name, **SMALL)
        assert model.token_embedding.dtype == torch.float16


class Clash(Mlp):
    def build(self) -> None:
        super().build()
        self.program = Linear(self.D, self.D, self.T)


def test_a_member_that_would_hide_the_model_s_own() -> None:
    with pytest.raises(
        DefinitionError, match="Clash names something 'program', which on torch means something else"
    ):
        nest.load(Clash, backend="torch", weights=None, D=4)


class Unbounded(Block):
    D: Dim
    T: DType

    def build(self) -> None:
        self.cache = State("Batch Capacity D", self.T, write_axis=1)

    @entry
    def go(self, x: Float[Tensor, "Batch N D"]) -> Float[Tensor, "Batch Capacity D"]:
        return self.cache.update(x, 0) * 1.0


def test_caches_without_a_bound_need_a_capacity() -> None:
    model = nest.load(Unbounded, backend="torch", weights=None, D=4)
    with pytest.raises(CallError, match=r"say how many, as in new_session\(Capacity=256\)"):
        model.new_session()
    assert model.new_session(Capacity=3).go(np.ones((1, 2, 4), np.float32)).shape == (1, 3, 4)


def test_graphs_of_a_model_without_caches_are_refused() -> None:
    model = nest.load("resnet-18", backend="torch", weights=None, seed=1)
    with pytest.raises(
        CallError, match="graphs=True records entries that use caches, and resnet-18 has none"
    ):
        model.new_session(graphs=True)
