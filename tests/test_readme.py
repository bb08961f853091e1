"""What the README tells people to type works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nest.cli._parser import parse
from nest.registry import entries

from .docs.markdown import blocks, pages

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / page for page in pages()]


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks that run nest or make, without their comments."""
    lines = [
        line.partition(" #")[0].strip()
        for block in blocks(page.relative_to(ROOT).as_posix())
        if block.language == "sh"
        for line in block.code.splitlines()
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
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = [t.partition("?")[0] for t in re.findall(r"\]\(([^)#]+)", text)]
    written = {"models/index.md", *(f"models/{entry.name}/index.md" for entry in entries())}
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert [
        t for t in missing if (page.parent / t).resolve() not in {ROOT / "docs" / w for w in written}
    ] == []
