"""The snippets of the entries' READMEs run: on the real weights where they can be had, else on small random ones.

The small ones go through the same code: a copy of the entry with smaller generics, whose files lie in a Hub cache
with pins of their own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nest.checking.readme import snippets
from nest.ir.inventory import parameters
from nest.ir.parammap import TensorSpec
from nest.loading import program_of
from nest.registry import find, zoo, zoo_directory
from nest.weights.random import random_parameters
from nest.weights.writer import write_safetensors

ROOT = Path(__file__).parents[2]
SMALL = {"D": 24, "Inner": 40, "EncoderLayers": 1}


def python_of(name: str) -> list[str]:
    text = (zoo_directory() / name / "README.md").read_text("utf-8")
    return [snippet.code for snippet in snippets(text) if snippet.language == "python"]


def run(sources: list[str]) -> dict[str, Any]:
    """All of a page's snippets, one after another, as a reader would."""
    names: dict[str, Any] = {}
    for source in sources:
        exec(compile(source, "README.md", "exec"), names)
    return names


@pytest.fixture
def _beside_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(
        ROOT / "assets" / "audio" / "jfk.wav", folder / "talk.mp3"
    )  # the content decides, not the name
    monkeypatch.chdir(folder)


@pytest.mark.weights
@pytest.mark.usefixtures("_beside_a_recording")
def test_the_snippets_of_tiny_en(capsys: pytest.CaptureFixture[str]) -> None:
    sources = python_of("whisper-tiny.en")
    names = run(sources)
    text = "And so my fellow Americans ask not what your country can do for you, ask what you can do for your country."
    assert capsys.readouterr().out == f"{text}\n0.0 to 11.0 s: {text}\n"
    assert tuple(names["states"].shape) == (1, 1500, 384)
    assert names["logits"].shape == (1, 51864)
    spoken = names["tokens"][2:]
    assert names["transcribe"].tokenizer.decode(spoken).split()[:4] == ["And", "so", "my", "fellow"]


def small_zoo(folder: Path, hub: Path) -> None:
    """A zoo of whisper-tiny alone, of a smaller size, and a Hub cache that holds its files."""
    entry = folder / "whisper-tiny"
    shutil.copytree(zoo_directory() / "whisper-tiny", entry, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = (entry / "nest.toml").read_text("utf-8")
    head, table, rest = manifest.partition("[generics]")
    for name, value in SMALL.items():
        rest = re.sub(rf"^{name} = \d+$", f"{name} = {value}", rest, count=1, flags=re.MULTILINE)
    (entry / "nest.toml").write_text(head + table + rest, "utf-8")


def write_files(hub: Path) -> dict[str, Path]:
    """The checkpoint and tokenizer of the small entry, at its pinned commit in a Hub cache."""
    entry = find("whisper-tiny")
    weights = entry.manifest.weights
    assert weights is not None
    snapshot = hub / f"models--{weights.repo.replace('/', '--')}" / "snapshots" / weights.revision
    snapshot.mkdir(parents=True)
    specs = parameters(program_of(entry))
    arrays = random_parameters(specs, seed=3)
    stored = {}
    for path in specs:
        (rule,) = [rule for rule in entry.bindings.rules if rule.match(path) is not None]
        (name,) = rule.expression(rule.match(path) or {}, {}).sources()
        stored[name] = arrays[path]
    types = {name: TensorSpec(array.shape, "f32") for name, array in stored.items()}
    write_safetensors(snapshot / "model.safetensors", types, lambda name: stored[name])
    (snapshot / "tokenizer.json").write_text(json.dumps(tokenizer(50257)), "utf-8")
    return {path.name: path for path in snapshot.iterdir()}


def tokenizer(size: int) -> dict[str, Any]:
    """A byte-level vocabulary of made-up words."""
    words = (
        "".join(letters) for n in itertools.count(1) for letters in itertools.product("abcdefgh", repeat=n)
    )
    vocabulary = {word: token for token, word in enumerate(itertools.islice(words, size))}
    model = {"type": "BPE", "vocab": vocabulary, "merges": []}
    return {"model": model, "decoder": {"type": "ByteLevel"}, "added_tokens": []}


def pin(entry: Path, files: dict[str, Path]) -> None:
    """Give the copied manifest the digests and sizes of the files that were made."""
    manifest = (entry / "nest.toml").read_text("utf-8")
    for name, path in files.items():
        digest, size = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
        pinned = f'{{ name = "{name}", size = {size}, sha256 = "{digest}" }}'
        manifest = re.sub(rf'\{{ name = "{re.escape(name)}"[^}}]*\}}', pinned, manifest)
    (entry / "nest.toml").write_text(manifest, "utf-8")


@pytest.mark.usefixtures("_beside_a_recording")
def test_the_snippets_of_tiny_on_small_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of("whisper-tiny")
    small_zoo(tmp_path / "zoo", tmp_path / "hub")
    monkeypatch.setattr(zoo, "zoo_directory", lambda: tmp_path / "zoo")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "nest-cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("NEST_ZOO", "")
    pin(tmp_path / "zoo" / "whisper-tiny", write_files(tmp_path / "hub"))
    names = run(sources)
    language, transcribed, translated = capsys.readouterr().out.splitlines()
    assert language in names["languages"]
    assert transcribed
    assert translated
    assert names["heard"] == language
    assert names["logits"].shape == (1, 51865)
    assert names["model"].state_dict()["token_embedding"].shape == (51865, SMALL["D"])
