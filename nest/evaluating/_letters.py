"""Texts without their marks: what the normalisers of all languages share."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["plain_letters", "without_asides", "without_marks"]

_NOT_DECOMPOSED = {
    "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "ß": "ss", "ẞ": "SS", "đ": "d", "Đ": "D",
    "ð": "d", "Ð": "D", "þ": "th", "Þ": "th", "ł": "l", "Ł": "L",
}  # fmt: skip
"""Letters that Unicode does not take for another letter with a mark."""


def without_asides(text: str) -> str:
    """The text without what is in brackets or parentheses: nobody says `[music]`."""
    text = re.sub(r"[<\[][^>\]]*[>\]]", "", text)
    return re.sub(r"\(([^)]+?)\)", "", text)


def without_marks(text: str) -> str:
    """The text with a space for every mark, symbol and punctuation; letters with diacritics stay as they are."""
    return "".join(" " if _is_mark(letter) else letter for letter in unicodedata.normalize("NFKC", text))


def plain_letters(text: str, keep: str = "") -> str:
    """The same, with letters without their diacritics, and the characters of `keep` as they are."""
    return "".join(
        letter if letter in keep else _plain(letter) for letter in unicodedata.normalize("NFKD", text)
    )


def _plain(letter: str) -> str:
    if letter in _NOT_DECOMPOSED:
        return _NOT_DECOMPOSED[letter]
    if unicodedata.category(letter) == "Mn":
        return ""
    return " " if _is_mark(letter) else letter


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "MSP"
