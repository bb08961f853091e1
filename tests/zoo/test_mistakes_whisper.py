"""The ladder sees mistakes in Whisper's definition, on every backend."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from nest.verify import Setting, setting_of

from .mistakes import Mistakes, is_seen

WHISPER: Mistakes = {
    "tanh GELU": ("gelu(self.fc1(x))", "gelu(self.fc1(x), approximate=True)"),
    "epsilon x 10": ("self.encoder_norm = LayerNorm(self.D, self.T)",
                     "self.encoder_norm = LayerNorm(self.D, self.T, eps=1e-4)"),
    "missing scale": ("self.out_proj(merge_heads(attention(self.queries(x), keys, values)))",
                      "self.out_proj(merge_heads(attention(self.queries(x), keys, values, scale=1.0)))"),
    "swapped q and k": ("return split_heads(self.q_proj(x), self.Heads)",
                        "return split_heads(self.k_proj(x), self.Heads)"),
    "no causal mask": ("keys, values, causal=True)", "keys, values)"),
    "wrong norm": ("self.encoder_attn_layer_norm(x), keys", "self.final_layer_norm(x), keys"),
    "swapped keys and values": ("self.cross_k.assign(self.encoder_attn.keys(audio))",
                                "self.cross_k.assign(self.encoder_attn.values(audio))"),
    "last position": ("(lengths - 1).reshape(B, 1, 1)", "(lengths - lengths).reshape(B, 1, 1)"),
    "position off by one": ("take(self.decoder_positions, pos.reshape(B, 1))",
                            "take(self.decoder_positions, (pos - 1).reshape(B, 1))"),
    "cache written one late": ("self.self_k.update(self.self_attn.keys(h), pos)",
                               "self.self_k.update(self.self_attn.keys(h), pos + 1)"),
    "causal off by one": ("attention(self.queries(x), keys, values, pos, causal=True)",
                          "attention(self.queries(x), keys, values, pos + 1, causal=True)"),
}  # fmt: skip
"""Mistakes in Whisper's definition: what stands there, and what is put in its place."""


@pytest.fixture(scope="module")
def whisper(oracle_folder: Path) -> Setting:
    return setting_of("whisper-tiny", tiny=True, folder=oracle_folder)


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
@pytest.mark.parametrize("name", WHISPER)
def test_a_mistake_turns_the_ladder_red(name: str, backend: str, whisper: Setting, tmp_path: Path) -> None:
    """The ladder is itself tested: each mistake moves some output of every backend over its bound."""
    assert is_seen(whisper, WHISPER[name], backend, tmp_path)


def test_the_mistakes_are_seen_at_different_outputs(whisper: Setting) -> None:
    """Some only with caches: the cached entries are looked at for their own sake."""
    stateless = [n for n in whisper.program.entries if not whisper.program.entries[n].uses_state]
    assert len(list(itertools.takewhile(lambda r: r.entry in stateless, whisper.records[0]))) == 2
