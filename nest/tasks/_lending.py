"""Sessions of one model, lent to one caller at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Sessions"]


class Sessions:
    """Idle sessions of a model, which threads may share; one whose call failed is not lent again."""

    def __init__(self, model: Any, plan: str) -> None:
        self._model = model
        self._options = {} if plan == "exact" else {"plan": plan}
        self._idle: deque[Any] = deque()

    @contextmanager
    def lend(self) -> Iterator[Any]:
        """An idle session, or a new one."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = self._model.new_session(**self._options)
        yield session
        self._idle.append(session)
