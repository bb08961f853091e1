"""Sessions of a text model, lent by call and as large as the call needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nest._timing import stretch
from nest.tasks._sessions import session_options

__all__ = ["SizedSessions"]

_LEAST = 128
_MOST_IDLE = 2


class SizedSessions:
    """Keeps a few idle sessions for calls to come; threads may share it.

    A session's caches hold a power of two of tokens, as few as the call needs: what a step reads and writes grows with
    them, and a call of nearly the same length finds the same shapes compiled.
    """

    def __init__(self, model: Any, positions: int, plan: str) -> None:
        self.model = model
        self.positions = positions
        self.plan = plan
        self._idle: deque[tuple[int, int, Any]] = deque()

    def capacity(self, tokens: int) -> int:
        """How many slots the caches have that hold so many tokens."""
        return min(self.positions, max(_LEAST, 1 << max(0, tokens - 1).bit_length()))

    @contextmanager
    def lend(self, rows: int, tokens: int) -> Iterator[Any]:
        """Lend a session of so many rows that holds so many tokens in each. One whose call failed is not lent again."""
        capacity = self.capacity(tokens)
        session = self._found(rows, capacity)
        if session is None:
            options = session_options(self.model, self.plan)
            with stretch("new session"):
                session = self.model.new_session(Batch=rows, Capacity=capacity, **options)
        yield session
        self._idle.append((rows, capacity, session))
        while len(self._idle) > _MOST_IDLE:
            try:
                self._idle.popleft()
            except IndexError:  # another thread has just taken it
                break

    def _found(self, rows: int, capacity: int) -> Any:
        for _ in range(len(self._idle)):
            try:
                held = self._idle.pop()
            except IndexError:
                return None
            if held[:2] == (rows, capacity):
                return held[2]
            self._idle.appendleft(held)
        return None
