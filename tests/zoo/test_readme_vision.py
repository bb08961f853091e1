"""The snippets of the vision entries' READMEs, on random weights of a small configuration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .small import python_of, run, small_entry

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
