"""Whisper at a tiny configuration against the reference library in double precision: the oracle is right, and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.bench.whisper_parity import lively
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.weights.random import random_parameters

pytestmark = pytest.mark.reference

# Pairwise different sizes, so that no swap of two axes goes unseen.
TINY = {
    "Mels": 5, "Frames": 26, "D": 24, "Heads": 3, "Inner": 40, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 57,
    "MaxTokens": 11,
}  # fmt: skip
BATCH, LENGTH = 2, 7


@pytest.fixture(scope="module")
def params() -> dict[str, Any]:
    """Random parameters, large enough that attention is far from uniform."""
    drawn = lively(random_parameters(parameters(program_of("whisper-tiny", **TINY)), seed=5))
    return {p: a * 3 if "q_proj" in p or "k_proj" in p else a for p, a in drawn.items()}


@pytest.fixture(scope="module")
def inputs() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    mel = rng.standard_normal((BATCH, TINY["Mels"], TINY["Frames"])).astype(np.float32)
    return mel, rng.integers(0, TINY["Vocab"], (BATCH, LENGTH)).astype(np.int32)


@pytest.fixture(scope="module")
def library(params: dict[str, Any], inputs: tuple[Any, Any]) -> dict[str, Any]:
    """The reference library's results in f64."""
    import torch

    from nest.bench.whisper_parity import reference_model
    from nest.registry import find

    model = reference_model(find("whisper-tiny"), params, TINY).double()
    mel, tokens = inputs
    with torch.no_grad():
        states = model.model.encoder(torch.from_numpy(mel).double()).last_hidden_state
        logits = model(encoder_outputs=(states,), decoder_input_ids=torch.from_numpy(tokens).long()).logits
    return {"states": states.numpy(), "logits": logits.numpy()}


def load(backend: str, params: dict[str, Any], **options: Any) -> Any:
    return nest.load("whisper-tiny", backend=backend, weights=params, **TINY, **options)


def test_the_oracle_is_the_library_in_double_precision(
    params: dict[str, Any], inputs: tuple[Any, Any], library: dict[str, Any]
) -> None:
    oracle = load("reference", params, precision="f64")
    mel, tokens = inputs
    np.testing.assert_allclose(oracle.encode(mel), library["states"], atol=1e-12)
    np.testing.assert_allclose(oracle.decode(tokens, library["states"]), library["logits"], atol=1e-12)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_a_backend_in_f32(
    backend: str, params: dict[str, Any], inputs: tuple[Any, Any], library: dict[str, Any]
) -> None:
    session = load(backend, params).new_session(Batch=BATCH)
    mel, tokens = inputs
    for got, want in (
        (session.encode(mel), library["states"]),
        (session.decode(tokens, library["states"].astype(np.float32)), library["logits"]),
    ):
        error = np.abs(session.numpy(got) - want).max() / np.abs(want).max()
        assert error <= 5e-6


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_cached_entries_give_the_logits_of_the_whole_prefix(
    backend: str, params: dict[str, Any], inputs: tuple[Any, Any], library: dict[str, Any]
) -> None:
    """Prompts of unequal length in one batch, then steps at each row's own position."""
    session = load(backend, params).new_session(Batch=BATCH, Capacity=9)
    mel, tokens = inputs
    session.listen(mel)
    lengths = np.array([2, 4], np.int32)
    padded = np.where(np.arange(4) < lengths[:, None], tokens[:, :4], 0)
    rows = np.arange(BATCH)
    logits = session.numpy(session.prefill(padded, lengths))
    np.testing.assert_allclose(logits, library["logits"][rows, lengths - 1], atol=1e-5)
    for step in range(3):
        pos = lengths + step
        logits = session.numpy(session.step(tokens[rows, pos][:, None], pos))
        np.testing.assert_allclose(logits, library["logits"][rows, pos], atol=1e-5)


MUTATIONS = {
    "tanh GELU": ("gelu(self.fc1(x))", "gelu(self.fc1(x), approximate=True)"),
    "no key mask": ("keys, values, causal=True)", "keys, values)"),
    "position off by one": ("take(self.decoder_positions, pos.reshape(B, 1))",
                            "take(self.decoder_positions, (pos - 1).reshape(B, 1))"),
    "cache written one late": ("self.self_k.update(self.self_attn.keys(h), pos)",
                               "self.self_k.update(self.self_attn.keys(h), pos + 1)"),
    "swapped keys and values": ("self.cross_k.assign(self.encoder_attn.keys(audio))",
                                "self.cross_k.assign(self.encoder_attn.values(audio))"),
    "wrong norm": ("self.encoder_attn_layer_norm(x), keys", "self.final_layer_norm(x), keys"),
    "epsilon": ("self.encoder_norm = LayerNorm(self.D, self.T)",
                "self.encoder_norm = LayerNorm(self.D, self.T, eps=1e-4)"),
    "last position": ("(lengths - 1).reshape(B, 1, 1)", "(lengths - lengths).reshape(B, 1, 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_comparison_sees_a_mutation(
    name: str, params: dict[str, Any], inputs: tuple[Any, Any], library: dict[str, Any], tmp_path: Any
) -> None:
    """The ladder is itself tested: each of these mistakes must move some result beyond its tolerance."""
    from nest.registry import find
    from nest.registry._definition import load_root

    before, after = MUTATIONS[name]
    text = find("whisper-tiny").source.read_text(encoding="utf-8")
    assert text.count(before) >= 1, f"{before!r} is no longer in the definition"
    path = tmp_path / "model.py"
    path.write_text(text.replace(before, after), encoding="utf-8")
    model = nest.load(load_root(path, "Model"), backend="torch", weights=params, **TINY)
    session = model.new_session(Batch=BATCH)
    mel, tokens = inputs
    rows = np.arange(BATCH)
    session.listen(mel)
    got = [session.numpy(session.encode(mel)), session.numpy(session.prefill(tokens[:, :3]))]
    want = [library["states"], library["logits"][:, 2]]
    for step in range(3):
        got.append(session.numpy(session.step(tokens[rows, 3 + step][:, None], 3 + step)))
        want.append(library["logits"][:, 3 + step])
    errors = [np.abs(g - w).max() / np.abs(w).max() for g, w in zip(got, want, strict=True)]
    assert max(errors) > 2e-5
