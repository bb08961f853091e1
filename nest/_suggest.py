"""Nearest names, for errors that say what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["aside", "did_you_mean", "nearest"]


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` of `names` that resemble `name`, best first."""
    folded: dict[str, str] = {}
    for candidate in names:
        folded.setdefault(candidate.lower(), candidate)
    return [folded[match] for match in difflib.get_close_matches(name.lower(), folded, n=count, cutoff=0.6)]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A sentence to append, `" Did you mean 'a' or 'b'?"`, or nothing where no name is near."""
    found = [f"'{candidate}'" for candidate in nearest(name, names)]
    if not found:
        return ""
    listed = f"{', '.join(found[:-1])} or {found[-1]}" if len(found) > 1 else found[0]
    return f" Did you mean {listed}?"


def aside(name: str, names: Iterable[str]) -> str:
    """The same inside a sentence: `" (did you mean 'a'?)"`, or nothing where no name is near."""
    found = nearest(name, names, count=1)
    return f" (did you mean '{found[0]}'?)" if found else ""
