"""Every page does what it says: its Python, commands and files, in their order, with the output it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from .markdown import blocks, pages
from .reader import RUN, Reader
from .settings import AFTER, ELSEWHERE, LIGHT, SHORTER, prepare

READ = [page for page in pages() if page not in ELSEWHERE and any(b.language in RUN for b in blocks(page))]


@pytest.mark.parametrize(
    "page", [p if p in LIGHT else pytest.param(p, marks=pytest.mark.weights) for p in READ]
)
def test_the_page_s_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    reader = Reader(folder, SHORTER)
    reader.names.update(prepare(page, folder, monkeypatch))
    reader.read(blocks(page))
    if page in AFTER:
        AFTER[page](reader)


def test_commands_that_are_shortened_stand_somewhere() -> None:
    lines = {
        line.partition(" #")[0].strip()
        for page in READ
        for b in blocks(page)
        if b.language == "sh"
        for line in b.code.splitlines()
    }
    assert SHORTER.keys() <= lines
