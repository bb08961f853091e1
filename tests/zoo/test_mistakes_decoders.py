"""The ladder sees mistakes in the decoders' definitions and in the layers that they share, on every backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.layers import GroupedAttention
from nest.verify import Setting, setting_of

from .mistakes import Mistakes, is_seen

BACKENDS = ["torch", "onnx", "jax", "nnx"]

LLAMA: Mistakes = {
    "rope in neighbouring pairs": ("(0, 2, 1, 3), pos, inv_freq)",
                                   '(0, 2, 1, 3), pos, inv_freq, layout="interleaved")'),
    "rope not scaled": ("self.rope_theta, self.rope_scaling)", "self.rope_theta)"),
    "epsilon x 10": ("self.norm = RMSNorm(self.D, self.T, eps=self.eps)",
                     "self.norm = RMSNorm(self.D, self.T, eps=10 * self.eps)"),
    "another gate": ("GatedMlp(self.D, self.Inner, self.T)", 'GatedMlp(self.D, self.Inner, self.T, "gelu")'),
    "wrong norm": ("self.attention(self.attention_norm(x)", "self.attention(self.mlp_norm(x)"),
    "missing scale": ("scale=self.scale", "scale=1.0"),
    "no causal mask": ("self.seen(q, k, v)", "ops.attention(q, k, v)"),
    "keys for values": ("self.v_cache.update(v, 0)", "self.v_cache.update(k, 0)"),
    "heads across": ("self.k_proj(x).reshape(B, S, self.KvHeads, self.HeadDim)",
                     "self.k_proj(x).reshape(B, S, self.HeadDim, self.KvHeads).permute(0, 1, 3, 2)"),
    "position off by one": ("self.heads(x, pos, inv_freq)", "self.heads(x, pos + 1, inv_freq)"),
    "cache written one late": ("self.k_cache.update(k, pos)", "self.k_cache.update(k, pos + 1)"),
    "causal off by one": ("self.seen(q, keys, values, pos)", "self.seen(q, keys, values, pos + 1)"),
    "last position": ("(lengths - 1)", "(lengths - lengths)"),
    "tied head": ("self.token_embedding if self.head is None else self.head", "self.token_embedding"),
}  # fmt: skip

OTHERS: dict[str, Mistakes] = {
    "qwen2.5-0.5b-instruct": {
        "keys without bias": ("k = self.k_proj(x)", "k = ops.linear(x, self.k_proj.weight)"),
    },
    "qwen3-0.6b": {
        "keys without norm": ("self.q_norm(q), self.k_norm(k)", "self.q_norm(q), k"),
        "norms swapped": ("self.q_norm(q), self.k_norm(k)", "self.k_norm(q), self.q_norm(k)"),
    },
    "phi-3-mini-4k-instruct": {
        "no window": ("causal=True, window=self.window", "causal=True"),
        "window one wider": ("window=self.window, scale", "window=1 + (self.window or 0), scale"),
    },
    "gpt2": {
        "exact GELU": ("gelu(self.up(x), approximate=True)", "gelu(self.up(x))"),
        "epsilon x 10": ("self.norm = LayerNorm(self.D, self.T, eps=self.eps)",
                         "self.norm = LayerNorm(self.D, self.T, eps=10 * self.eps)"),
        "swapped q and k": ("q = split_heads(self.q_proj(x), self.Heads)",
                            "q = split_heads(self.k_proj(x), self.Heads)"),
        "position off by one": ("take(self.positions, pos.reshape(B, 1))",
                                "take(self.positions, (pos - 1).reshape(B, 1))"),
        "cache written one late": ("self.v_cache.update(v, pos)", "self.v_cache.update(v, pos + 1)"),
    },
}  # fmt: skip
"""By the entry on whose tiny configuration they show; Llama's are looked for on an untied one with scaled positions."""

CASES = [("llama-3.1-8b-instruct", name) for name in LLAMA] + [(e, n) for e in OTHERS for n in OTHERS[e]]


@pytest.fixture(scope="module")
def settings(oracle_folder: Path) -> dict[str, Setting]:
    names = {entry for entry, _ in CASES}
    return {name: setting_of(name, tiny=True, folder=oracle_folder) for name in names}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("entry", "name"), CASES)
def test_a_mistake_turns_the_ladder_red(
    entry: str, name: str, backend: str, settings: dict[str, Setting], tmp_path: Path
) -> None:
    mistake = OTHERS.get(entry, LLAMA)[name]
    layers = [] if entry == "gpt2" else [GroupedAttention]
    assert is_seen(settings[entry], mistake, backend, tmp_path, layers=layers)
