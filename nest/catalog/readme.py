"""An entry's README as the parts of its page: what it says of a thing stands where the page shows that thing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Readme", "read"]

_HEADING = re.compile(r"^## (?P<title>.+?)[ \t]*$", re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>(?:\.\./)*[^):\s]+)\)")


@dataclass(frozen=True)
class Readme:
    """The text before the first section, and the sections by title."""

    title: str
    opening: str
    sections: Mapping[str, str]

    def section(self, title: str) -> str:
        """The text of a section; empty where the README has none of that title."""
        return self.sections.get(title, "")


def read(text: str) -> Readme:
    """Take a README apart. Headings inside of fenced blocks are none. Its links are made those of the page."""
    text = _LINK.sub(lambda found: f"]({_moved(found['target'])})", text)
    starts = list(_HEADING.finditer(_without_code(text)))
    ends = [*(found.start() for found in starts[1:]), len(text)][: len(starts)]
    opening = text[: starts[0].start() if starts else len(text)]
    title, _, opening = opening.partition("\n")
    sections = {f["title"]: text[f.end() : end].strip() for f, end in zip(starts, ends, strict=True)}
    return Readme(title.removeprefix("# ").strip(), opening.strip(), sections)


def _without_code(text: str) -> str:
    """The text with fenced blocks blanked, of the same length."""
    return re.sub(
        r"^(`{3,}).*?^\1\s*$",
        lambda found: re.sub(r"[^\n]", " ", found[0]),
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def _moved(target: str) -> str:
    """A link from `zoo/ENTRY/README.md` as one from `models/ENTRY/index.md`."""
    if target.startswith("../../docs/"):
        return target.replace("../../docs/", "../../", 1)
    return re.sub(
        r"(^|/)README\.md\b", r"\1index.md", re.sub(r"(^|/)model\.py$", r"\1index.md#source", target)
    )
