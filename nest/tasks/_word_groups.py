"""Tokens into words: what is spoken as one, with the punctuation that belongs to it."""

from __future__ import annotations

import string
from collections.abc import Iterable
from dataclasses import dataclass

from nest.tasks._characters import continues

__all__ = ["Group", "words"]

UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
"""Codes of languages that are written without spaces between words: there a character stands for a word."""

OPENING = frozenset("\"'“‘¿¡([{«「『（《-")
EITHER = frozenset("\"'-")
"""Marks that open a word where a space is before them, and close one elsewhere."""
MARKS = OPENING | frozenset(string.punctuation) | frozenset("。，！？：；”’）、」』》»…–—")


@dataclass(frozen=True)
class Group:
    """A word as it stands in the text, with the space before it.

    Attributes:
        text: with the marks around it.
        tokens: how many it is made of.
        before: how many of them are marks in front of what is spoken. after: likewise behind it. A pause is heard at
            a mark, so that the word's time is that of the tokens between.
    """

    text: str
    tokens: int
    before: int = 0
    after: int = 0


def words(pieces: Iterable[tuple[str, tuple[int, ...]]], language: str) -> list[Group]:
    """The words of a text; joined they are the text.

    Args:
        pieces: what `Tokenizer.pieces` gives: runs of whole characters with their tokens.
        language: its code, which says whether words have spaces between them.
    """
    found: list[Group] = []
    for text, ids in pieces:
        piece = Group(text, len(ids))
        if found and not _begins(found[-1].text, text, language in UNSPACED):
            found[-1] = _joined(found[-1], piece)
        else:
            found.append(piece)
    return _with_marks(found)


def _begins(before: str, text: str, unspaced: bool) -> bool:
    if not text:
        return False
    if unspaced:  # but for what stands there in another script, as a name or a number
        latin = before[-1:].isascii() and before[-1:].isalnum() and text[0].isascii() and text[0].isalnum()
        return not latin and not continues(before, text[0])
    return text[0].isspace()


def _with_marks(groups: list[Group]) -> list[Group]:
    """Marks that stand by themselves are of the word that they open or close."""
    found: list[Group] = []
    for group in groups:
        if found and (_is_marks(found[-1].text) or _closes(group.text)):
            found[-1] = _joined(found[-1], group)
        else:
            found.append(group)
    if len(found) > 1 and _is_marks(found[-1].text):
        last = found.pop()
        found[-1] = _joined(found[-1], last)
    return found


def _is_marks(text: str) -> bool:
    """Whether there is nothing but marks and spaces, or nothing at all."""
    return all(letter in MARKS or letter.isspace() for letter in text)


def _closes(text: str) -> bool:
    mark = text.strip()
    opens = bool(mark) and all(letter in OPENING for letter in mark)
    free = text[:1].isspace() or not any(letter in EITHER for letter in mark)
    return _is_marks(text) and not (opens and free)


def _joined(left: Group, right: Group) -> Group:
    tokens = left.tokens + right.tokens
    if _is_marks(right.text):
        return Group(left.text + right.text, tokens, left.before, left.after + right.tokens)
    before = left.tokens + right.before if _is_marks(left.text) else left.before
    return Group(left.text + right.text, tokens, before, right.after)
