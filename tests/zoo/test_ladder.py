"""Every definition of the zoo at its tiny configuration, on every backend: agreement, and that mistakes are seen."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nest
from nest.registry import entries, find
from nest.registry._definition import load_root
from nest.verify import Setting, matrix, setting_of
from nest.verify.compare import compare
from nest.verify.limits import PROJECT
from nest.verify.records import replay

BACKENDS = ["torch", "onnx", "jax", "nnx"]


@pytest.mark.parametrize("backend", [*BACKENDS, "reference"])
def test_every_entry_agrees_with_the_oracle(setting: Setting, backend: str) -> None:
    """Entries at batch 1 and with three unequal rows, cached against uncached, tokens in three ways, every plan."""
    rows = [r for r in matrix(setting, backends=[backend], library=False) if r.backend == backend]
    assert [r for r in rows if r.status != "ok"] == []
    seen = {r.output for r in rows}
    assert {name for name in setting.program.entries if name not in seen} == set()
    assert {r.batch for r in rows} == {1, 3}
    if setting.decoding is not None:
        assert {"tokens, cached", "tokens, one call"} <= seen


@pytest.mark.reference
def test_the_reference_library_agrees_with_the_oracle(setting: Setting) -> None:
    rows = [r for r in matrix(setting, backends=["reference"]) if r.backend == "transformers"]
    if not rows:
        pytest.skip(f"there is no reference library for the family '{setting.entry.manifest.model.family}'")
    for row in rows:
        assert row.status == "ok"
        assert row.relative is None or row.relative < PROJECT["f32"] / 4
    tokens = {"tokens, generate"} if setting.decoding is not None else set()
    assert {r.output for r in rows} >= {*setting.program.entries, *tokens}


def test_cached_entries_are_the_whole_prefix_s(setting: Setting) -> None:
    rows = [r for r in matrix(setting, backends=["reference"], library=False) if r.backend == "oracle"]
    assert all(r.status == "ok" for r in rows)
    if setting.decoding is not None:
        assert {r.output.partition(" against ")[0] for r in rows} == {"prefill", "step"}


def test_what_is_decoded_varies(setting: Setting) -> None:
    """Tokens that are equal whatever the model does would show nothing."""
    if setting.decoding is None:
        pytest.skip("it decodes nothing")
    counts = Counter(token for tokens in setting.tokens for token in tokens.ids)
    assert len(counts) > 5
    assert len({tuple(t.ids) for t in setting.tokens}) == len(setting.tokens)


@pytest.mark.parametrize("name", [e.name for e in entries()])
def test_tiny_configurations_have_pairwise_different_sizes(name: str) -> None:
    """A swap of two axes of one size goes unseen."""
    tiny, own = find(name).manifest.tiny, find(name).generics
    assert tiny.keys() <= own.keys()
    sizes = [v for n, v in tiny.items() if n[0].isupper() and isinstance(v, int)]
    if "HeadDim" not in tiny:
        towers = [n.removesuffix("Heads") for n in tiny if n.endswith("Heads") and n != "KvHeads"]
        sizes += [int(tiny[f"{tower}D"]) // int(tiny[f"{tower}Heads"]) for tower in towers]
    assert len(sizes) == len(set(sizes))
    assert all(int(v) >= 2 for n, v in tiny.items() if n.endswith("Layers"))


WHISPER = {
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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WHISPER)
def test_a_mistake_turns_the_ladder_red(name: str, backend: str, whisper: Setting, tmp_path: Path) -> None:
    """The ladder is itself tested: each mistake moves some output of every backend over its bound."""
    before, after = WHISPER[name]
    text = find("whisper-tiny").source.read_text(encoding="utf-8")
    assert before in text, f"{before!r} is no longer in the definition"
    path = tmp_path / "model.py"
    path.write_text(text.replace(before, after), encoding="utf-8")
    root: Any = load_root(path, "Model")
    model = nest.load(root, backend=backend, weights=whisper.params, **whisper.generics)
    found = replay(whisper.program, model.new_session(Batch=3), whisper.records)
    # One call after another, up to the first that is wrong: compiling the rest would only take time.
    assert any(
        compare(got, want).relative > PROJECT["f32"]
        for position, rows in enumerate(found)
        for row, results in zip(whisper.records, rows, strict=True)
        for got, want in zip(results, row[position].results, strict=True)
    )


def test_the_mistakes_are_seen_at_different_outputs(whisper: Setting, tmp_path: Path) -> None:
    """Some only with caches: the cached entries are looked at for their own sake."""
    stateless = [n for n in whisper.program.entries if not whisper.program.entries[n].uses_state]
    assert len(list(itertools.takewhile(lambda r: r.entry in stateless, whisper.records[0]))) == 2
