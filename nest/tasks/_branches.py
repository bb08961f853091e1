"""Sessions of several rows that go on from what another has heard: beams, and texts of which the best is taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Branches"]

_MOST_IDLE = 2


class Branches:
    """Keeps a few idle ones, whose memory and compiled shapes serve again; threads may share it.

    All that are lent are of one model. One whose call failed is not lent again.
    """

    def __init__(self) -> None:
        self._idle: deque[tuple[object, Any]] = deque()

    @contextmanager
    def lend(self, session: Any, rows: Sequence[int]) -> Iterator[Any]:
        """Lend one that holds copies of these rows of `session`."""
        size = len(rows), getattr(session, "symbols", {}).get("Capacity")
        branch = self._found(size)
        if branch is None:
            branch = session.fork(rows)
        else:
            branch.take_from(session, rows)
        yield branch
        self._idle.append((size, branch))
        while len(self._idle) > _MOST_IDLE:
            try:
                self._idle.popleft()
            except IndexError:  # another thread has just taken it
                break

    def _found(self, size: object) -> Any:
        for _ in range(len(self._idle)):
            try:
                held = self._idle.pop()
            except IndexError:
                return None
            if held[0] == size:
                return held[1]
            self._idle.appendleft(held)
        return None
