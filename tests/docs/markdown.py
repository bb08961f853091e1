"""The fenced blocks of a page, with what the comments above them say to whoever runs them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ROOT", "Block", "blocks", "pages"]

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?P<notes>(?:[ \t]*<!-- [^\n]* -->\n)*)"
    r"(?P<indent>[ \t]*)(?P<fence>`{3,})(?P<language>[\w-]*)(?P<info>[^\n]*)\n(?P<code>.*?)^[ \t]*(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_NOTE = re.compile(r"<!-- (?P<key>[\w ]+?): (?P<value>.*?) -->")
_TITLE = re.compile(r'title="(?P<file>[^"]+)"')
_HEADING = re.compile(r"^(#{1,6} .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        page: its file, from the repository's root. line: of the first line of its code.
        language: as the fence says. code: without the fence's indentation.
        heading: the title of the part of the page that it stands in.
        notes: comments `<!-- key: value -->` right above the fence, such as `not run` with a reason; and `file`, the
            name of the file that the block is, as the fence's title or a comment says.
        follows: whether nothing but blank lines stands between it and the block before.
    """

    page: str
    line: int
    language: str
    code: str
    heading: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    follows: bool = False

    @property
    def place(self) -> str:
        """Where it stands, as `page:line`."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page that people read: the two in the root and those of the site that somebody wrote."""
    site = (p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))
    return ["README.md", "CONTRIBUTING.md", *sorted(p for p in site if not p.startswith("docs/models/"))]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order; comments within a fence are part of it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found, end = [], 0
    heading = ""
    for match in _FENCE.finditer(text):
        between = text[end : match.start()]
        titles = _HEADING.findall(between)
        heading = titles[-1].lstrip("#").strip() if titles else heading
        found.append(
            Block(
                page,
                text.count("\n", 0, match.start("code")) + 1,
                match["language"],
                textwrap.dedent(match["code"]) if match["indent"] else match["code"],
                heading,
                _notes(match["info"], match["notes"]),
                follows=bool(found) and not between.strip() and not match["notes"],
            )
        )
        end = match.end()
    return found


def _notes(info: str, comments: str) -> dict[str, str]:
    title = _TITLE.search(info)
    named = {"file": title["file"]} if title else {}
    return named | {note["key"]: note["value"] for note in _NOTE.finditer(comments)}
