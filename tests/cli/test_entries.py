"""`nest inspect` on the real zoo, and entries that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command, data


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
