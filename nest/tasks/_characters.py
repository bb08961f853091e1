"""Which code points belong together as one character, as far as texts are cut for display and for words.

Source: Unicode Standard Annex 29, grapheme clusters; conjoining jamo and Indic conjuncts are left out.
"""

from __future__ import annotations

import unicodedata

__all__ = ["continues"]

_JOINER = "\u200d"
_ENDING = "\u0e33\u0eb3"
"""Thai and Lao vowels that are written after what they belong to, and count as letters."""


def continues(before: str, letter: str) -> bool:
    """Whether `letter` goes on with the character that `before` ends with: an accent or vowel sign, a skin tone, the
    next part of a joined emoji, the second letter of a flag."""
    if not before:
        return False
    if letter == _JOINER or letter in _ENDING or unicodedata.category(letter) in ("Mn", "Mc", "Me"):
        return True
    if "\U0001f3fb" <= letter <= "\U0001f3ff" or (before[-1] == _JOINER and not letter.isspace()):
        return True
    return _of_flag(letter) and (len(before) - len(_without_flags(before))) % 2 == 1


def _of_flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _without_flags(text: str) -> str:
    """The text up to the letters of flags that it ends with."""
    while text and _of_flag(text[-1]):
        text = text[:-1]
    return text
