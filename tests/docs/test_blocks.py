"""No block is forgotten: each page's code is run by a test, or says beside itself why it cannot be."""

from __future__ import annotations

import pytest

from .markdown import ROOT, blocks, pages
from .reader import LANGUAGES, RUN
from .settings import ELSEWHERE, LIGHT
from .test_pages import READ

MOST_NOT_RUN = 6
"""On all pages together: reasons are for what no test can do, not for what is laborious."""


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page: str) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: the fence says one of {', '.join(LANGUAGES)}"
        if block.language in ("toml", "json") and "not run" not in block.notes:
            assert "file" in block.notes, f"{block.place}: a comment above says which file this is"
        assert len(block.notes.get("not run", "a reason of some words")) > 15, (
            f"{block.place}: no reason is given"
        )


def test_every_page_with_code_is_run() -> None:
    code = {page for page in pages() if any(b.language in RUN for b in blocks(page))}
    assert code == {*READ, *ELSEWHERE}
    for page, test in ELSEWHERE.items():
        text = (ROOT / test).read_text("utf-8")
        name = page.rpartition("/")[2].removesuffix(".md")
        assert name in text, f"{test} does not name {page}"
        assert "in blocks(" in text, f"{test} does not take the page's blocks"
    assert LIGHT <= code


def test_few_blocks_are_not_run() -> None:
    left = [block.place for page in pages() for block in blocks(page) if "not run" in block.notes]
    assert len(left) <= MOST_NOT_RUN, left


def test_comments_above_blocks_are_known() -> None:
    known = {"not run", "file", "machine"}
    for page in pages():
        for block in blocks(page):
            assert block.notes.keys() <= known, block.place
