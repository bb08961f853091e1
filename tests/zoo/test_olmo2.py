"""OLMo 2, an entry without weights: its names, its numbers, and that mistakes in its definition are seen."""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nest
from nest.checking import check
from nest.loading import program_of
from nest.registry import Entry, find
from nest.registry.tensors import read_tensors
from nest.verify import Setting, matrix, setting_of
from nest.verify.limits import PROJECT

from .conftest import EVERYTHING
from .mistakes import Mistakes, is_seen

FOLDER = Path(__file__).resolve().parent.parent / "data" / "olmo2"
BACKENDS = ["torch", "onnx", "jax", "nnx"]
MISTAKES: Mistakes = {
    "pre-norm of attention": ("self.attention_norm(self.attention(x, inv_freq))",
                              "self.attention(self.attention_norm(x), inv_freq)"),
    "pre-norm of feed-forward": ("self.mlp_norm(self.mlp(x))", "self.mlp(self.mlp_norm(x))"),
    "norm of the sum": ("x + self.attention_norm(self.attention(x, inv_freq))",
                        "self.attention_norm(x + self.attention(x, inv_freq))"),
    "attention without its norm in steps": ("self.attention_norm(self.attention.step(x, pos, inv_freq))",
                                            "self.attention.step(x, pos, inv_freq)"),
    "queries not normed": ("self.q_norm(self.q_proj(x))", "self.q_proj(x)"),
    "keys not normed": ("self.k_norm(self.k_proj(x))", "self.k_proj(x)"),
    "queries normed head by head": (
        "q = self.q_norm(self.q_proj(x)).reshape(B, S, self.Heads, self.HeadDim).permute(0, 2, 1, 3)",
        "from nest.layers import rms_norm\n"
        "        q = rms_norm(self.q_proj(x).reshape(B, S, self.Heads, self.HeadDim), eps=self.eps)"
        ".reshape(B, S, self.Heads * self.HeadDim) * self.q_norm.weight\n"
        "        q = q.reshape(B, S, self.Heads, self.HeadDim).permute(0, 2, 1, 3)"),
    "not turned": ("rope(q, pos, inv_freq), rope(k, pos, inv_freq), v", "q, k, v"),
    "pairs side by side": ("rope(k, pos, inv_freq), v", 'rope(k, pos, inv_freq, layout="interleaved"), v'),
    "another base": ("self.rope_theta)", "10000.0)"),
    "epsilon": ("self.attention_norm = RMSNorm(self.D, self.T, eps=self.eps)",
                "self.attention_norm = RMSNorm(self.D, self.T, eps=1e-3)"),
    "the head tied": ("linear(self.norm(x), self.head)", "linear(self.norm(x), self.token_embedding)"),
    "no last norm": ("linear(self.norm(last), self.head)", "linear(last, self.head)"),
    "another token of the prompt": ("(lengths - 1).reshape(B, 1, 1)", "(lengths - lengths).reshape(B, 1, 1)"),
    "a slot late": ("self.attention.step(x, pos, inv_freq)", "self.attention.step(x, pos + 1, inv_freq)"),
}  # fmt: skip


@cache
def olmo2() -> Entry:
    return find(FOLDER / "olmo2-1b")


@cache
def tiny(folder: Path) -> Setting:
    return setting_of(olmo2(), tiny=True, folder=folder, trust_source=True)


def test_its_files_are_right() -> None:
    """Bindings too, against the derived list: an entry need not pin weights for that."""
    report = check(str(FOLDER / "olmo2-1b"), trust_source=True)
    assert report.faults == []
    (said,) = [str(f) for f in report.findings if (f.part, f.level) == ("bindings", "ok")]
    assert said == "179 parameters, 179 tensors of tensors.json, one to one"


def test_wrong_bindings_are_seen_without_weights(tmp_path: Path) -> None:
    copy = tmp_path / "olmo2-1b"
    shutil.copytree(FOLDER / "olmo2-1b", copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "bindings.json").read_text("utf-8")
    (copy / "bindings.json").write_text(text.replace("self_attn.q_norm", "self_attn.query_norm"), "utf-8")
    (fault,) = check(str(copy), trust_source=True).faults
    assert "model.layers.0.self_attn.query_norm.weight" in str(fault)
    (copy / "bindings.json").write_text("{", "utf-8")
    assert any("bindings.json" in str(fault) for fault in check(str(copy), trust_source=True).faults)


@pytest.mark.reference
def test_the_list_of_names_is_the_reference_library_s() -> None:
    import torch
    from transformers import Olmo2ForCausalLM

    from nest.verify.library._shared import sizes_of
    from nest.verify.library.olmo2 import config_of

    program = program_of(olmo2(), trust_source=True)
    with torch.device("meta"):
        model = Olmo2ForCausalLM(config_of(sizes_of(program), program.root.statics))
    listed = read_tensors(FOLDER / "olmo2-1b", "olmo2-1b")
    assert listed is not None
    assert listed.tensors == {n: f"f32{list(t.shape)}" for n, t in model.state_dict().items()}


@pytest.mark.reference
def test_a_file_that_the_library_writes_binds_and_gives_its_logits(
    oracle_folder: Path, tmp_path: Path
) -> None:
    """The entry with a tiny checkpoint in a folder, so that check and load take the way that published weights take."""
    import torch

    from nest.verify.library import library_of

    setting = tiny(oracle_folder)
    model = library_of(setting.entry, setting.program, setting.params).model
    model.save_pretrained(tmp_path / "checkpoint")
    entry = _with_weights(setting.entry, tmp_path / "checkpoint" / "model.safetensors", tmp_path / "olmo2-1b")
    report = check(str(entry), trust_source=True)
    assert report.faults == []
    tokens = np.array([[5, 3, 8, 90, 2]], np.int32)
    loaded = nest.load(str(entry), backend="reference", trust_source=True)
    with torch.no_grad():
        want = model(torch.from_numpy(tokens).long(), use_cache=False).logits.numpy()
    assert np.abs(np.asarray(loaded.forward(tokens)) - want).max() < 5e-6 * np.abs(want).max()


def _with_weights(entry: Entry, file: Path, folder: Path) -> Path:
    """A copy of the entry at its tiny sizes, whose weights are a file of this machine."""
    shutil.copytree(entry.directory, folder, ignore=shutil.ignore_patterns("__pycache__", "tensors.json"))
    text = (folder / "nest.toml").read_text("utf-8")
    for name, value in entry.manifest.tiny.items():
        text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, count=1, flags=re.M)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    spec = f'{{ name = "{file.name}", size = {file.stat().st_size}, sha256 = "{digest}" }}'
    weights = (
        f'[weights]\nrepo = "local/olmo2"\nrevision = "{digest[:40]}"\n'
        f'directory = "{file.parent}"\nfiles = [{spec}]\n'
    )
    (folder / "nest.toml").write_text(f"{text}\n{weights}", "utf-8")
    return folder


@pytest.mark.parametrize("backend", [*BACKENDS, "reference"])
def test_it_agrees_with_the_oracle(backend: str, oracle_folder: Path) -> None:
    rows = [*matrix(tiny(oracle_folder), backends=[backend], library=False)]
    assert [r for r in rows if r.status != "ok"] == []
    assert {"prefill against forward", "step against forward"} <= {r.output for r in rows}


@pytest.mark.reference
def test_the_reference_library_agrees_with_the_oracle(oracle_folder: Path) -> None:
    setting = tiny(oracle_folder)
    rows = [r for r in matrix(setting, backends=["reference"]) if r.backend == "transformers"]
    assert {r.output for r in rows} == {*setting.program.entries, "tokens, generate"}
    for row in rows:
        assert row.status == "ok"
        assert row.relative is None or row.relative < PROJECT["f32"] / 4


@pytest.mark.parametrize("backend", BACKENDS if EVERYTHING else BACKENDS[:1])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_turns_the_ladder_red(name: str, backend: str, oracle_folder: Path, tmp_path: Path) -> None:
    assert is_seen(tiny(oracle_folder), MISTAKES[name], backend, tmp_path)
