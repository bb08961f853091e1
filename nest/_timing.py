"""Named stretches of a load and of a call, whose times `NEST_TRACE` asks for.

Without it, a stretch is one check. The variable is read once, when the first name of nest is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["TRACED", "stretch", "timed"]

F = TypeVar("F", bound=Callable[..., Any])

TRACED = os.environ.get("NEST_TRACE", "") not in ("", "0")
"""Whether times are asked for."""


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_NOTHING = _Nothing()


def stretch(name: str) -> AbstractContextManager[None]:
    """A context whose time counts under `name`, below the stretch that it is in; nothing if no times are asked for."""
    if not TRACED:
        return _NOTHING
    from nest._trace_times import recorder

    return recorder().stretch(name)


def timed(name: str) -> Callable[[F], F]:
    """A function whose calls are stretches; the function itself if no times are asked for."""

    def around(function: F) -> F:
        if not TRACED:
            return function

        @wraps(function)
        def noted(*args: Any, **kwargs: Any) -> Any:
            with stretch(name):
                return function(*args, **kwargs)

        return cast(F, noted)

    return around
