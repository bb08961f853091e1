"""Texts as they are compared: what is written in two ways, and said in one, is no error.

Source: Radford et al., 2022, arXiv 2212.04356, appendix C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from nest.evaluating._english import english
from nest.evaluating._letters import without_asides, without_marks

__all__ = ["UNSPACED", "Normalizer", "basic", "english", "normalizer_of", "split"]

Normalizer = Literal["english", "basic", "split"]

UNSPACED = ("zh", "yue", "ja", "th", "lo", "my")
"""Languages that are written without spaces: characters are compared."""


def basic(text: str) -> str:
    """A text of any language: lower case, without marks and what is in brackets, words set apart by one space."""
    return " ".join(without_marks(without_asides(text.lower())).lower().split())


def split(text: str) -> str:
    """`basic`, and each character a word."""
    return " ".join(basic(text).replace(" ", ""))


NORMALIZERS: dict[Normalizer, Callable[[str], str]] = {"english": english, "basic": basic, "split": split}


def normalizer_of(language: str) -> Normalizer:
    """The name of the normaliser for texts of a language, by its code."""
    if language == "en":
        return "english"
    return "split" if language in UNSPACED else "basic"
