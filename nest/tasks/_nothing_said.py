"""What a model writes where nobody speaks."""

from __future__ import annotations

import unicodedata

__all__ = ["says_something"]


def says_something(text: str) -> bool:
    """Whether a text has a letter or a digit: of noise and music a model writes marks alone, such as `.` or `♪♪`."""
    return any(unicodedata.category(letter)[0] in "LN" for letter in text)
