"""Somebody who reads a page and does what it says, block after block, in one folder and one Python session."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from . import shell
from .markdown import Block

__all__ = ["LANGUAGES", "RUN", "Reader"]

RUN = ("python", "sh", "toml", "json")
LANGUAGES = (*RUN, "text")
"""What a fence may say. A `text` right below a command or code is what that prints; elsewhere it is an illustration."""


@dataclass
class Reader:
    """Runs blocks in `folder`, and for commands of `shorter` what stands there; `said` is the last output."""

    folder: Path
    shorter: Mapping[str, str] = field(default_factory=dict)
    module: ModuleType = field(default_factory=lambda: ModuleType("page"))
    said: str = ""
    status: int = 0
    ran: list[Block] = field(default_factory=list)

    @property
    def names(self) -> dict[str, Any]:
        """What the page's Python has by name."""
        return self.module.__dict__

    def read(self, page: list[Block]) -> None:
        """Run a whole page. A command may fail only where the page shows its error."""
        for block, after in zip(page, [*page[1:], None], strict=True):
            shown = after if after is not None and after.language == "text" and after.follows else None
            if block.language in RUN and "not run" not in block.notes:
                self.run(block)
                self.ran.append(block)
                failing = (
                    shown is not None
                    and re.search(r"error: |^  FAULT ", shown.code, re.MULTILINE) is not None
                )
                assert bool(self.status) == failing, f"{block.place} ended with {self.status}:\n{self.said}"
                if shown is not None:
                    self.compare(shown)

    def run(self, block: Block) -> None:
        self.said, self.status = "", 0
        if "file" in block.notes:
            path = self.folder / block.notes["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            # A file that is there already is the checkout's: the block is added to it.
            before = path.read_text(encoding="utf-8") + "\n\n" if self.grows(path) else ""
            path.write_text(before + block.code, encoding="utf-8")
        elif block.language == "python":
            self.python(block)
        elif block.language == "sh":
            self.said, self.status = shell.run(block.code, self.folder, self.shorter)
        else:
            raise AssertionError(
                f"{block.place}: a comment above says which file this is: <!-- file: NAME -->"
            )

    def grows(self, path: Path) -> bool:
        """Whether a file is of the copy of the checkout that some pages work in, to which they add."""
        return path.is_file() and (self.folder / "pyproject.toml").is_file()

    def python(self, block: Block) -> None:
        """With the page's line numbers, and with its source where tracebacks and definitions look for it."""
        name = f"<{block.place}>"
        source = "\n" * (block.line - 1) + block.code
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        sys.modules.setdefault(self.module.__name__, self.module)
        stream = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(stream):
            exec(compile(source, name, "exec"), self.names)
        self.said = stream.getvalue()

    def compare(self, shown: Block) -> None:
        """What the page shows against what was said.

        `...` stands for anything; how many blanks and where lines end is the terminal's affair.
        """
        pattern = ".*".join(map(re.escape, _flat(shown.code).split("...")))
        said = _flat(self.said)
        assert re.fullmatch(pattern, said), (
            f"{shown.place} shows\n{shown.code}\nand this was said:\n{self.said}"
        )


def _flat(text: str) -> str:
    return " ".join(text.split())
