"""Sessions of one model, lent to one caller at a time, and what a task asks them for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nest._timing import stretch

__all__ = ["Sessions", "plan_option", "session_options"]


class Sessions:
    """Idle sessions of a model, which threads may share; one whose call failed is not lent again.

    Args:
        model: what the sessions are of.
        **options: of each new one.
    """

    def __init__(self, model: Any, **options: Any) -> None:
        self._model = model
        self._options = options
        self._idle: deque[Any] = deque()

    @contextmanager
    def lend(self) -> Iterator[Any]:
        """An idle session, or a new one."""
        try:
            session = self._idle.pop()
        except IndexError:
            with stretch("new session"):
                session = self._model.new_session(**self._options)
        yield session
        self._idle.append(session)


def plan_option(plan: str) -> dict[str, Any]:
    """Of a session by a plan; nothing for the exact one, so that models of one's own need know no plans."""
    return {} if plan == "exact" else {"plan": plan}


def session_options(model: Any, plan: str) -> dict[str, Any]:
    """Of a session that decodes again and again: on CUDA, torch records its calls and loops."""
    device = getattr(model, "device", None)
    graphs = {"graphs": True} if getattr(device, "type", None) == "cuda" else {}
    return graphs | plan_option(plan)
