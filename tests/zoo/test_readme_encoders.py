"""The snippets of the text encoders' READMEs: on real weights where they can be had, else on small random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..tasks.encoders import WORDS, word_pieces
from .small import byte_level_tokenizer, python_of, run, small_entry

SMALL = {"D": 24, "Inner": 40, "Layers": 2}


@pytest.mark.weights
def test_the_snippets_of_minilm(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(python_of("all-MiniLM-L6-v2"))
    assert capsys.readouterr().out.splitlines() == [
        "(3, 384) float32",
        "[[ 1.    0.49  0.04]",
        " [ 0.49  1.   -0.01]",
        " [ 0.04 -0.01  1.  ]]",
        "Baking bread without yeast",
    ]
    assert tuple(names["states"].shape) == (2, 4, 384)
    assert tuple(names["vectors"].shape) == (2, 384)


def test_the_snippets_of_bge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = snippets("bge-small-en-v1.5", word_pieces(WORDS), tmp_path, monkeypatch)
    assert capsys.readouterr().out.strip() in names["documents"]
    assert names["embed"].prompts.keys() == {"query"}
    assert tuple(names["vectors"].shape) == (2, 24)


def test_the_snippets_of_bert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = snippets("bert-base-uncased", word_pieces(WORDS), tmp_path, monkeypatch)
    text, *choices = capsys.readouterr().out.splitlines()
    assert text.startswith("Paris is the")
    assert text.endswith("of France.")
    assert len(choices) == 3
    assert float((names["follows"] + names["elsewhere"]).detach()) == pytest.approx(1)
    assert tuple(names["pooled"].shape) == (1, 24)
    assert tuple(names["states"].shape) == (1, 11, 24)


def test_the_snippets_of_roberta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = byte_level_tokenizer(50265, {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 50264})
    names = snippets("roberta-base", words, tmp_path, monkeypatch)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("The Nile flows through")
    assert second.startswith("She plays the")
    assert tuple(names["logits"].shape) == (2, 1, 50265)


def test_the_snippets_of_modernbert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = byte_level_tokenizer(50368, {"[CLS]": 50281, "[SEP]": 50282, "[MASK]": 50284})
    names = snippets("modernbert-base", words, tmp_path, monkeypatch)
    out = capsys.readouterr().out
    assert out.startswith("def area(radius):\n    return math.")
    assert len(names["answer"].masks[0]) == 3
    assert tuple(names["states"].shape) == (2, 6, 24)


def snippets(
    name: str, tokenizer: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    sources = python_of(name)
    small_entry(name, SMALL, {"tokenizer.json": tokenizer}, folder, monkeypatch)
    return run(sources)
