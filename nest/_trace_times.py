"""What `NEST_TRACE` shows: a tree of times on standard error, or a file for Chrome's and Perfetto's viewers.

`NEST_TRACE=1` prints a tree whenever an outermost stretch ends: a load, a pipeline, a call of one.
`NEST_TRACE=times.json` keeps every stretch, and writes the file when the process ends.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Recorder", "Stretch", "recorder", "tree_lines"]

_WIDTH = 46


@dataclass
class Stretch:
    """A named time, and those within it; calls of one name in one place are counted together."""

    name: str
    seconds: float = 0.0
    count: int = 0
    within: dict[str, Stretch] = field(default_factory=dict)

    def below(self, name: str) -> Stretch:
        """The one of that name within this one, made if there is none."""
        return self.within.setdefault(name, Stretch(name))

    def add(self, seconds: float) -> None:
        """Count one more call."""
        self.seconds += seconds
        self.count += 1


class Recorder:
    """Notes stretches, for each thread apart.

    Args:
        file: where Chrome's trace format goes; a tree is printed at each outermost end if None.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.events: list[dict[str, Any]] = []
        self._open = threading.local()

    @contextmanager
    def stretch(self, name: str) -> Iterator[None]:
        """See `nest._timing.stretch`."""
        stack = self._stack()
        node = stack[-1].below(name) if stack else Stretch(name)
        stack.append(node)
        start = time.perf_counter()
        try:
            yield
        finally:
            self._end(node, start, time.perf_counter() - start)
            stack.pop()
            if not stack and self.file is None and sys.stderr is not None:
                sys.stderr.write("".join(f"nest: {line}\n" for line in tree_lines(node)))

    def known(self, name: str, seconds: float) -> None:
        """A stretch that somebody else has measured, and that ends now; of a thread that is in none, nothing."""
        if stack := self._stack():
            self._end(stack[-1].below(name), time.perf_counter() - seconds, seconds)

    def _end(self, node: Stretch, start: float, seconds: float) -> None:
        node.add(seconds)
        if self.file is not None:
            where = {"pid": os.getpid(), "tid": threading.get_ident()}
            self.events.append(
                {"name": node.name, "ph": "X", "ts": start * 1e6, "dur": seconds * 1e6, **where}
            )

    def _stack(self) -> list[Stretch]:
        if not hasattr(self._open, "stack"):
            self._open.stack = []
        stack: list[Stretch] = self._open.stack
        return stack

    def write(self) -> None:
        """Write the events, with microseconds of the process's own clock."""
        if self.file is not None and self.events:
            try:
                self.file.write_text(json.dumps({"traceEvents": self.events}), encoding="utf-8")
            except OSError as error:
                sys.stderr.write(
                    f"nest: NEST_TRACE={self.file} cannot be written: {error.strerror or error}\n"
                )


def tree_lines(root: Stretch) -> list[str]:
    """A line for each stretch: milliseconds, and the share of the whole; `(other)` is what no stretch names."""
    lines = [_line(root.name, 0, root.seconds, None)]

    def visit(node: Stretch, depth: int) -> None:
        rest = node.seconds - sum(part.seconds for part in node.within.values())
        for part in node.within.values():
            name = f"{part.name} x{part.count}" if part.count > 1 else part.name
            lines.append(_line(name, depth, part.seconds, root.seconds))
            visit(part, depth + 1)
        if node.within:
            lines.append(_line("(other)", depth, max(rest, 0.0), root.seconds))

    visit(root, 1)
    return lines


def _line(name: str, depth: int, seconds: float, whole: float | None) -> str:
    share = "" if not whole else f" {seconds / whole:5.0%}"
    return f"{'  ' * depth + name:<{_WIDTH}} {seconds * 1e3:9.1f} ms{share}"


@cache
def recorder() -> Recorder:
    """The process's own, as `NEST_TRACE` says."""
    wanted = os.environ.get("NEST_TRACE", "1")
    made = Recorder(Path(wanted) if wanted.endswith(".json") else None)
    if made.file is not None:
        atexit.register(made.write)
    return made
