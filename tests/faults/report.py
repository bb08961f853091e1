"""The table of `docs/reliability.md`: each row comes from a test, and each test compares its row with the page.

NEST_WRITE_DOCS=1 python -m pytest tests/faults      # writes the page anew
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
WRITING = os.environ.get("NEST_WRITE_DOCS") == "1"

ROWS = (
    "the Hub refuses connections",
    "status 401: the repository is private, or not there",
    "status 403: the repository is gated",
    "status 404: the file is not there",
    "status 404: the commit is not there",
    "status 429, again and again",
    "status 500, then it works",
    "status 500, again and again",
    "cut at 50 % once",
    "cut at 10 % every time",
    "cut at 50 % every time",
    "cut at 90 % every time",
    "a stall at 50 % every time",
    "right length, wrong content",
    "a proxy answers with a page of its own",
    "no commit header, no ETag, no length",
    "a redirect to a blocked host",
    "the cached file was changed",
    "the disk is too small",
    "the disk fills up meanwhile",
    "the cache is read-only",
    "the cache is read-only and has the file",
    "no symbolic links",
    "eight processes pull at once into an empty cache",
    "kill -9 in the middle",
    "Ctrl-C in the middle",
    "cached, and no network",
    "not cached, and `--offline`",
)
"""Every fault, in the order of the page."""

_HEAD = """\
# Reliability

What happens when fetching goes wrong. Every row of the table is the outcome of a test in `tests/faults`: `nest pull`,
with the real `huggingface_hub` client, against a hub on the loopback interface that misbehaves so. The tests compare
themselves with this page, so it is current, and write it:

    NEST_WRITE_DOCS=1 python -m pytest tests/faults

What holds in every row, and is asserted in every test:

- a file takes its name only after its size and sha256 were compared with the pin: what came in part, or came wrong,
  is never found as the file, by nest or by anything else that shares the cache;
- the error is one paragraph on standard error, and the exit code is 1 (0 where the pull succeeds; 130 and 137 where it
  was interrupted or killed);
- once the fault is gone, the next `nest pull` finishes and verifies. It asks only for the bytes that are not here.

"What is left" leaves out empty folders and lock files. `CACHE` is the Hub client's cache; the file has 1048576 bytes.

| fault | exit code | what the user sees | what is left on disk | the next pull |
|---|---|---|---|---|
"""

_TAIL = """
Two limits. pip fetches a wheel whole: a mirror on the package index that breaks off starts anew, though nothing of it
is ever taken for the file. And "kept" bytes are kept until a pull needs them or `nest cache prune` deletes them.
"""


@dataclass(frozen=True)
class Row:
    """One fault and what came of it."""

    fault: str
    code: int
    seen: str
    left: str
    following: str

    def line(self) -> str:
        """The row as it stands on the page."""
        cells = (self.fault, str(self.code), self.seen or "nothing", self.left, self.following)
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


WRITTEN: dict[str, Row] = {}
"""What the tests of this session found, where the page is to be written."""


def check(row: Row) -> None:
    """Compare a row with the page, or keep it for the page."""
    assert row.fault in ROWS
    if WRITING:
        WRITTEN[row.fault] = row
        return
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert row.line() in lines, f"docs/reliability.md is not current; found now:\n{row.line()}"


def write_page() -> None:
    """Write the page from the rows of this session, if all of them are there."""
    if set(WRITTEN) == set(ROWS):
        table = "".join(f"{WRITTEN[fault].line()}\n" for fault in ROWS)
        PAGE.write_text(_HEAD + table + _TAIL, encoding="utf-8")


def page_faults() -> list[str]:
    """The first column of the page's table."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    return cells[1:]


def plain(text: str, names: dict[str, str]) -> str:
    """A message without what differs by machine and run: paths, ports, and the words of other libraries."""
    text = text.strip().replace("nest: error: ", "")
    for found, name in names.items():
        text = text.replace(found, name)
    text = re.sub(r"(cannot be reached) \(.*?\)(?=[.;])", r"\1 (why)", text)
    text = re.sub(r"(in a row) \(.*?\)(?=; \d)", r"\1 (why)", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "cdn.example", text)
    text = re.sub(r"\b\d+ are free", "N are free", text)
    return re.sub(r"[0-9a-f]{64}", lambda match: f"{match[0][:8]}…", text)
