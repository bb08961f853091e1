"""Text files as they are kept: UTF-8, plain line ends, and nothing of the machine that they were written on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["text_faults"]

LONGEST = 120
_PROMPT = "TODO:"
"""What `nest new` and `nest adopt` put where a person knows what a program does not."""
_MACHINE = re.compile(r"(?<![\w.])(/home/|/Users/|/root/|/tmp/|[A-Z]:\\\\?Users)")


def text_faults(file: Path) -> Iterator[tuple[str, int | None]]:
    """(what is wrong, line) of one text file."""
    raw = file.read_bytes()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"not UTF-8 text: {error.reason} at byte {error.start}", None
        return
    if b"\r" in raw:
        yield "lines end with a carriage return; use a line feed alone", None
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "it does not end with one line feed", None
    for number, line in enumerate(text.replace("\r", "").split("\n"), 1):
        if line != line.rstrip():
            yield "spaces at the end of the line", number
        if (prompt := line.find(_PROMPT)) >= 0:
            wanted = line[prompt + len(_PROMPT) :].strip(' ",')
            yield f"still to be written: {wanted}", number
        if "\t" in line:
            yield "a tab; indent with spaces", number
        if found := _MACHINE.search(line):
            yield f"'{found[1]}...' is a folder of one machine", number
        if file.suffix == ".py" and len(line) > LONGEST:
            yield f"the line has {len(line)} characters; at most {LONGEST}", number
