"""A section of an entry's page, and what goes beside the page for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """One part of a page.

    `text` is Markdown and may hold HTML; its own headings begin at the third level. `files` are written beside the
    page, by name: bytes, or the path of a file to copy. `scripts` are names of `nest/catalog/assets` that
    the page loads.
    """

    title: str
    anchor: str
    text: str
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
