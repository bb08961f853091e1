"""A text as it is said."""

from __future__ import annotations

from collections.abc import Generator as Pieces
from collections.abc import Iterator
from time import perf_counter
from typing import Self

from nest.tasks._text_rows import Generation, TextRow
from nest.tasks._writing import LONGEST

__all__ = ["Pace", "Stream"]

_SECONDS = 0.1


class Stream(Iterator[str]):
    """The pieces of one text, each as soon as it can be shown; joined they are `result.text`.

    A piece has whole characters. Nothing is held back but what may be the beginning of a stop string. A stream works
    while it is asked: what is not read is not computed, and `close` gives up the rest.
    """

    def __init__(self, pieces: Pieces[str, None, None], row: TextRow) -> None:
        self._pieces = pieces
        self._row = row

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """Stop generating."""
        self._pieces.close()

    @property
    def result(self) -> Generation:
        """The whole text and why it ended; what has not been read is generated first.

        Raises:
            ValueError: the stream was closed before its end.
        """
        for _ in self._pieces:
            pass
        return self._row.result()


class Pace:
    """How many tokens to ask for at once: as many as come in a tenth of a second, so that a reader need not wait and
    a fast device is not asked for every token. Which tokens come does not depend on it."""

    def __init__(self) -> None:
        self.count = 1
        self._since = perf_counter()

    def took(self) -> None:
        """Say that `count` tokens have come since the last call."""
        now = perf_counter()
        each = max((now - self._since) / self.count, 1e-6)
        self.count = max(1, min(LONGEST, int(_SECONDS / each)))
        self._since = now

    def resume(self) -> None:
        """Say that work begins again, after a reader had the turn."""
        self._since = perf_counter()
