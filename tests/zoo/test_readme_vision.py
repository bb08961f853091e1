"""The snippets of the vision entries' READMEs, on random weights of a small configuration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import nest
from nest.registry import find

from .small import byte_level_tokenizer, python_of, run, small_entry

ROOT = Path(__file__).parents[2]
CLASSES = {"config.json": {"id2label": {str(i): f"class {i}" for i in range(1000)}}}


@pytest.fixture(autouse=True)
def _beside_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(ROOT / "assets" / "images" / "coffee.jpg", folder / "photo.jpg")
    monkeypatch.chdir(folder)


def test_the_snippets_of_vit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of("vit-base-patch16-224")
    small = {"D": 24, "Heads": 4, "Inner": 40, "Layers": 1}
    small_entry("vit-base-patch16-224", small, CLASSES, tmp_path, monkeypatch)
    names = run(sources)
    told = [line.split(" ", 1) for line in capsys.readouterr().out.splitlines()]
    assert len(told) == 3
    assert all(0 < float(score) < 1 and label.startswith("class ") for score, label in told)
    assert tuple(names["logits"].shape) == (1, 1000)
    assert tuple(names["states"].shape) == (1, 197, 24)
    assert len(names["classes"]) == 1
    assert f"class {int(names['logits'].argmax())}" == told[0][1]


def test_the_snippets_of_dinov2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of("dinov2-base")
    small = {"D": 24, "Heads": 4, "Inner": 40, "Layers": 1}
    small_entry("dinov2-base", small, {}, tmp_path, monkeypatch)
    # The page names the checkpoint's own width.
    names = run([source.replace("768", "24") for source in sources])
    assert capsys.readouterr().out.split() == ["[[1.", "1.]", "[1.", "1.]]"]
    assert names["vectors"].shape == (2, 24)
    assert tuple(names["states"].shape) == (1, 257, 24)
    assert names["vector"].shape == (24,)
    assert names["embed"].encoder.settings.size == (224, 224)
    assert names["fine"].encoder.settings.size == (448, 448)
    assert nest.load("dinov2-base", backend="reference").program.root.generics["Height"].value == 518


@pytest.mark.parametrize(("name", "features"), [("resnet-18", 20), ("resnet-50", 24)])
def test_the_snippets_of_the_resnets(
    name: str,
    features: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sources = python_of(name)
    manifest = find(name).manifest
    small = {key: manifest.tiny[key] for key in ("Stem", "Features", "widths", "depths")}
    small_entry(name, small, CLASSES, tmp_path, monkeypatch)
    names = run(sources)
    assert "class " in capsys.readouterr().out
    if name == "resnet-18":
        assert names["vector"].shape == (features,)
        assert len(names["wide"]) == 1
    else:
        assert names["features"].shape == (1, features)
        assert f"class {int(names['logits'].argmax())}" == names["best"].label


TOWERS = {
    "VisionD": 24, "VisionHeads": 4, "VisionInner": 40, "VisionLayers": 1,
    "TextD": 20, "TextHeads": 2, "TextInner": 30, "TextLayers": 1,
}  # fmt: skip


def test_the_snippets_of_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of("clip-vit-base-patch32")
    special = {"<|startoftext|>": 49406, "<|endoftext|>": 49407}
    files = {"tokenizer.json": byte_level_tokenizer(49406, special)}
    small_entry("clip-vit-base-patch32", {**TOWERS, "Joint": 14}, files, tmp_path, monkeypatch)
    names = run(sources)
    scores = [float(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert sum(scores) == pytest.approx(1, abs=2e-3)
    assert names["pictures"].shape == (2, 14)
    assert names["query"].shape == (14,)
    assert names["nearest"] in (0, 1)
    assert tuple(names["logits"].shape) == (1, 1)


def test_the_snippets_of_siglip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = python_of("siglip-base-patch16-224")
    files = {"tokenizer.json": byte_level_tokenizer(32000)}
    small_entry("siglip-base-patch16-224", TOWERS, files, tmp_path, monkeypatch)
    names = run(sources)
    assert names["scores"].shape == (2, 2)
    assert (names["scores"][0] == names["scores"][1]).all()
    assert -1 <= names["cosine"] <= 1
    assert tuple(names["logits"].shape) == (1, 2)
