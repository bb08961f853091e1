"""How many words of a text are wrong.

Source of the alignment: jiwer, https://jitsi.github.io/jiwer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nest._optional import need

__all__ = ["Counts", "check_installed", "compared", "edits"]


@dataclass(frozen=True)
class Counts:
    """The fewest edits that make a reference of a text, in words or characters; counts of several texts add up."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def errors(self) -> int:
        """All edits."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def length(self) -> int:
        """How many words or characters the reference has."""
        return self.hits + self.substitutions + self.deletions

    @property
    def rate(self) -> float:
        """Edits a word of the reference; over 1 where more came than was said.

        Raises:
            ZeroDivisionError: the reference is empty.
        """
        return self.errors / self.length

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.hits + other.hits,
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
        )


def check_installed() -> Any:
    """The module jiwer.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return need("jiwer", extra="eval", purpose="count the words that are wrong")


def compared(reference: str, text: str) -> tuple[Counts, Counts]:
    """The counts in words, and in characters with the spaces between words; both texts are normalised already.

    Raises:
        MissingDependencyError: jiwer is not installed.
    """
    jiwer = check_installed()
    return _counts(jiwer.process_words(reference, text)), _counts(jiwer.process_characters(reference, text))


def edits(reference: str, text: str) -> list[tuple[str, str]]:
    """Where they differ: words of the reference and those in their place, one of which may be empty.

    Raises:
        MissingDependencyError: jiwer is not installed.
    """
    found = check_installed().process_words(reference, text)
    said, heard = found.references[0], found.hypotheses[0]
    return [
        (
            " ".join(said[one.ref_start_idx : one.ref_end_idx]),
            " ".join(heard[one.hyp_start_idx : one.hyp_end_idx]),
        )
        for one in found.alignments[0]
        if one.type != "equal"
    ]


def _counts(found: Any) -> Counts:
    return Counts(found.hits, found.substitutions, found.deletions, found.insertions)
