"""`nest new` and `nest bind`: what an author begins with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import nest
from nest.checking import Checkpoints, check, lint
from nest.registry import find

from .conftest import Command
from .library import CASES, change_config


def test_a_new_architecture_begins_with_a_definition_that_runs(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "zoo" / "my-model"
    done = command("new", str(folder))
    assert (done.code, done.err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "model.py",
        "nest.toml",
        "samples.json",
    ]
    report = check(folder, trust_source=True)
    assert [fault.message for fault in report.faults] == []
    model = nest.load(folder, backend="reference", weights=None, trust_source=True)
    assert model.forward([[1, 2, 3]]).shape == (1, 3, 1000)
    prompts = [fault.message for fault in lint(folder).faults if "still to be written" in fault.message]
    assert len(prompts) == 7


def test_nothing_is_overwritten(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("of years", "utf-8")
    done = command("new", str(tmp_path / "mine"))
    assert done.code == 1
    assert "is there already, and nothing is overwritten" in done.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_checkpoint_of_a_known_family_is_read(command: Command, tmp_path: Path) -> None:
    CASES["qwen3"].save(tmp_path / "tuned")
    done = command("new", str(tmp_path / "my-qwen"), "--like", "llama", "--from", str(tmp_path / "tuned"))
    assert (done.code, done.err) == (0, "")
    entry = find(tmp_path / "my-qwen")
    assert (entry.name, entry.generics["HeadDim"], entry.generics["qk_norm"]) == ("my-qwen", 10, True)
    assert check(tmp_path / "my-qwen", checkpoints=Checkpoints(offline=True)).faults == []


def test_without_a_checkpoint_it_is_like_another(command: Command, tmp_path: Path) -> None:
    assert command("new", str(tmp_path / "mine"), "--like", "vit").code == 0
    entry = find(tmp_path / "mine")
    assert entry.manifest.source.path == "@vit-base-patch16-224/model.py"
    assert entry.trusted
    unknown = command("new", str(tmp_path / "other"), "--like", "vitt")
    assert unknown.code == 1
    assert "No entry and no family is called 'vitt'" in unknown.err


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A Llama whose author calls things otherwise, and whose configuration nobody knows."""
    CASES["llama"].save(tmp_path / "foreign")
    file = tmp_path / "foreign" / "model.safetensors"
    tensors = load_file(file)
    for old, new in (("model.layers", "blocks"), ("self_attn", "attn"), ("input_layernorm", "ln_1"),
                     ("post_attention_layernorm", "ln_2"), ("model.embed_tokens", "wte"), ("model.norm", "ln_f"),
                     ):  # fmt: skip
        tensors = {name.replace(old, new): value for name, value in tensors.items()}
    save_file(tensors, file, {"format": "pt"})
    change_config(tmp_path / "foreign", model_type="my-llama")
    return tmp_path / "foreign"


def test_an_unknown_family_is_scaffolded_and_bound_by_suggestion(
    command: Command, foreign: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    done = command("new", str(folder), "--like", "smollm2-135m-instruct", "--from", str(foreign))
    assert done.code == 0
    assert "Generics are those of 'smollm2-135m-instruct': compare each" in " ".join(done.out.split())
    manifest = (folder / "nest.toml").read_text("utf-8")
    sizes = {
        "D": 24,
        "Heads": 4,
        "KvHeads": 2,
        "HeadDim": 6,
        "Inner": 40,
        "Layers": 2,
        "Vocab": 83,
        "MaxTokens": 64,
    }
    for name, size in {**sizes, "tied": "false"}.items():
        lines = [
            f"{name} = {size}" if line.startswith(f"{name} = ") else line for line in manifest.splitlines()
        ]
        manifest = "\n".join(lines) + "\n"
    (folder / "nest.toml").write_text(manifest, "utf-8")
    told = json.loads(command("bind", str(folder), "--suggest", "--json").out)
    assert told["unmatched_parameters"] == told["unmatched_tensors"] == told["written"] == []
    assert {one["confidence"] for one in told["proposals"]} == {"certain"}
    assert command("bind", str(folder), "--write").code == 0
    model = nest.load(find(folder), backend="reference")
    assert model.forward([[1, 2, 3]]).shape == (1, 3, 83)


def test_bind_says_what_it_could_not_match(command: Command, tmp_path: Path) -> None:
    assert command("bind", "whisper-tiny").code == 2
    CASES["llama"].save(tmp_path / "tuned")
    command("new", str(tmp_path / "mine"), "--from", str(tmp_path / "tuned"))
    done = command("bind", str(tmp_path / "mine"), "--suggest", "--offline")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["certain", "token_embedding", "model.embed_tokens.weight"]
