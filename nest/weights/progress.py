"""What a person sees of a fetch: one line that says what comes, and a bar with speed and time left."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

__all__ = ["Meter", "size_text", "time_text"]

_REDRAW_SECONDS = 0.1
_WINDOW_SECONDS = 5.0
_BAR = 24


class Meter:
    """Counts the bytes of several files that come at once, and draws one line for all of them.

    Args:
        label: what is fetched.
        total: bytes of all files; None where a size is not known.
        stream: the terminal to draw on; nothing is drawn where it is None.
        clock: seconds, rising.
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        stream: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = label
        self._total = total
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()
        self._done = 0
        self._drawn_at = -_REDRAW_SECONDS
        self._recent: deque[tuple[float, int]] = deque()
        self._stopped = False

    @classmethod
    def on_terminal(cls, label: str, total: int | None, *, wanted: bool | None) -> Meter:
        """A meter on standard error, if that is a terminal or if it is `wanted` all the same."""
        stream = sys.stderr
        if stream is None:  # as under pythonw
            return cls(label, total, None)
        capable = stream.isatty() and os.environ.get("TERM") != "dumb"  # which cannot take a line back
        return cls(label, total, stream if (capable if wanted is None else wanted) else None)

    def report(self, count: int, *, came: bool = True) -> None:
        """Count bytes; called from any thread.

        Args:
            count: how many; negative for those that have to come again.
            came: they came just now, so that they say how fast it goes.

        Raises:
            KeyboardInterrupt: the fetch was stopped, in the threads that were not interrupted themselves.
        """
        if self._stopped:
            raise KeyboardInterrupt
        with self._lock:
            now = self._clock()
            self._done += count
            if not came:
                self._recent = deque((when, done + count) for when, done in self._recent)
            self._recent.append((now, self._done))
            while len(self._recent) > 2 and now - self._recent[0][0] > _WINDOW_SECONDS:
                self._recent.popleft()
            if self._stream is not None and now - self._drawn_at >= _REDRAW_SECONDS:
                self._drawn_at = now
                self._stream.write(f"\r\x1b[K{self.line(_columns(self._stream))}")
                self._stream.flush()

    def line(self, columns: int | None = None) -> str:
        """`whisper-tiny  [#######...]  43%  65 of 151 MB  12.3 MB/s  7 s left`.

        Of a terminal of `columns`, less than its width: a line that wraps is not taken back. The bar goes first.
        """
        parts = self._parts()
        if columns is None:
            return "  ".join(parts)
        if len("  ".join(parts)) >= columns:
            parts = [part for part in parts if not part.startswith("[")]
        return "  ".join(parts)[: max(columns - 1, 0)]

    def _parts(self) -> list[str]:
        done, total = self._done, self._total
        parts = [self._label]
        if total:
            share = min(done / total, 1.0)
            parts += [f"[{'#' * int(_BAR * share):.<{_BAR}}]", f"{share:4.0%}"]
        parts.append(size_text(done) + (f" of {size_text(total)}" if total else ""))
        if speed := self._speed():
            parts.append(f"{size_text(round(speed))}/s")
            if total and done < total:
                parts.append(f"{time_text((total - done) / speed)} left")
        return parts

    def _speed(self) -> float:
        """Bytes a second of late; 0 where it is too early to say."""
        if len(self._recent) < 2:
            return 0.0
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return max(after - before, 0) / (end - start) if end > start else 0.0

    def stop(self) -> None:
        """Let every thread that reports from now on give up."""
        self._stopped = True

    def close(self) -> None:
        """Take the line away."""
        if self._stream is not None and self._drawn_at >= 0:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _columns(stream: TextIO) -> int | None:
    """The width of the terminal; None where it has none to tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # no terminal, or no file at all
        return None


def size_text(count: int | None) -> str:
    """`151 MB`, in powers of ten; `an unknown size` where it is not known."""
    if count is None:
        return "an unknown size"
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}" if size < 99.95 else f"{size:.0f} {unit}"


def time_text(seconds: float) -> str:
    """`7 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
