"""Where rules are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["RULES", "rule"]

F = TypeVar("F", bound=Callable[..., Any])

RULES: dict[str, Callable[..., Any]] = {}


def rule(function: F) -> F:
    """Register a rule under its function's name; an underscore at the end keeps a builtin's name free."""
    RULES[function.__name__.rstrip("_")] = function
    return function
