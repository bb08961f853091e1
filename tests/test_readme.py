"""What the README tells people to type works."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from nest.cli._parser import parse

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks that run nest or make, without their comments."""
    lines = [
        line.partition(" #")[0].strip()
        for block in [*blocks(page, ""), *blocks(page, "sh")]
        for line in block.splitlines()
    ]
    return [line for line in lines if line.startswith(("nest ", "make "))]


def test_the_first_thing_is_the_two_commands() -> None:
    assert commands(ROOT / "README.md")[:2] == ["make run", "make test"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_ones_that_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in commands(page):
        program, *arguments = shlex.split(line)
        if program == "nest":
            parse(arguments)
        else:
            assert arguments[0] in targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    assert [t for t in targets if "://" not in t and not (page.parent / t).exists()] == []


@pytest.mark.weights
def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nest.tasks import audio
    from nest.tasks.mel import MelSettings, log_mel

    shutil.copy(
        ROOT / "assets" / "audio" / "jfk.wav", tmp_path / "talk.mp3"
    )  # the content decides, not the name
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"mel": log_mel(audio.load("talk.mp3"), MelSettings())}
    use, write = blocks(ROOT / "README.md", "python")
    exec(compile(use, "<README>", "exec"), names)
    assert capsys.readouterr().out.startswith("And so my fellow Americans")
    assert tuple(names["states"].shape) == (1, 1500, 384)  # type: ignore[attr-defined]
    assert tuple(names["logits"].shape) == (1, 51864)  # type: ignore[attr-defined]
    written: dict[str, object] = {"__name__": "readme"}
    exec(compile(write, "<README>", "exec"), written)
    assert "class Mlp(nn.Module):" in capsys.readouterr().out
    assert tuple(written["model"](np.ones((3, 8), np.float32)).shape) == (3, 8)  # type: ignore[operator]
