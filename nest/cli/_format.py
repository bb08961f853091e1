"""Text for a terminal: columns, sizes, wrapped paragraphs."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any

__all__ = ["columns", "file_size", "json_text", "paragraph", "plain", "section", "width", "wrapped"]

_WIDEST = 110


def width() -> int:
    """Columns of the terminal, within what is pleasant to read; 80 where there is no terminal."""
    return max(40, min(shutil.get_terminal_size().columns, _WIDEST))


def plain(text: str) -> str:
    """The text without what a terminal would obey: names in it may be anybody's."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda found: repr(found[0])[1:-1], text)


def columns(rows: Sequence[Sequence[str]], *, indent: int = 0, last: int | None = None) -> str:
    """Rows with their cells aligned; cells of the last column are cut to `last` characters where it is given."""
    if not rows:
        return ""
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    room = last if last is not None else None
    lines = []
    for row in rows:
        cells = [cell.ljust(size) for cell, size in zip(row[:-1], sizes, strict=True)]
        tail = row[-1] if room is None else textwrap.shorten(row[-1], max(room, 8), placeholder="...")
        lines.append((" " * indent + "  ".join([*cells, tail])).rstrip())
    return "\n".join(lines)


def file_size(count: int | None) -> str:
    """`151 MB`, in powers of ten as file managers and networks count; `?` where it is not known."""
    if count is None:
        return "?"
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}" if size < 99.95 else f"{size:.0f} {unit}"


def paragraph(text: str, *, indent: int = 0) -> str:
    """The text wrapped to the terminal."""
    return "\n".join(" " * indent + line for line in wrapped(text, width() - indent))


def wrapped(text: str, room: int) -> list[str]:
    """Lines of at most `room` characters, broken at spaces alone: a path or a name can be copied whole."""
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)


def section(title: str, body: str) -> str:
    """A titled part of a card; nothing where there is nothing to say."""
    return f"\n{title}\n{body}\n" if body else ""


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """JSON as people read it: text of every language as it is, paths as text, what is not Unicode as JSON's escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return text.encode(errors="backslashreplace").decode()
