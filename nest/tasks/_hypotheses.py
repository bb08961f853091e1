"""What a beam search knows of one recording: the prefixes that it goes on with, and the texts that have ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hypotheses", "Text"]

NEVER = -1e37
"""A log-probability under which a token cannot come: rules in ops write -3e38 for what is excluded."""


@dataclass(frozen=True)
class Text:
    """Tokens of a text, without its end, and the sum of their log-probabilities and, where it has ended, the end's."""

    tokens: tuple[int, ...]
    total: float


@dataclass(frozen=True)
class _Candidate:
    text: Text
    row: int


class Hypotheses:
    """The beams of one recording.

    Args:
        size: how many prefixes are gone on with.
        most: how many ended texts are enough.
        end: the id that ends a text.

    Attributes:
        rows: the prefix of each row of the session; None where there are fewer prefixes than rows.
        ended: texts, in the order in which they were found.
    """

    def __init__(self, size: int, most: int, end: int) -> None:
        self.size, self.most, self.end = size, most, end
        self.rows: list[Text | None] = [Text((), 0.0), *[None] * (size - 1)]
        self.ended: list[Text] = []

    @property
    def done(self) -> bool:
        """Whether enough texts have ended, or nothing is left to go on with."""
        return len(self.ended) >= self.most or all(row is None for row in self.rows)

    def grow(self, values: NDArray[np.float32], ids: NDArray[np.int32]) -> list[int]:
        """Go on with the likeliest `size` prefixes that are one token longer.

        A text that ends is kept where fewer than `size` others are likelier. Prefixes stay in the row that they grew in
        where they can, so that few caches have to be moved.

        Args:
            values: log-probabilities [rows, K] of the likeliest tokens of each row, in falling order, at least
                `size` + 1 of them. ids: those tokens.

        Returns:
            For each row, that whose caches it is to have.
        """
        kept: list[_Candidate] = []
        for found in self._candidates(values, ids):
            if found.text.tokens[-1] != self.end:
                kept.append(found)
                if len(kept) == self.size:
                    break
            elif len(self.ended) < self.most:
                self.ended.append(Text(found.text.tokens[:-1], found.text.total))
        return self._place(kept)

    def texts(self) -> list[Text]:
        """The ended texts; and the likeliest prefixes, where fewer than `size` have ended."""
        left = sorted((row for row in self.rows if row is not None), key=lambda text: -text.total)
        return [*self.ended, *left[: max(0, self.size - len(self.ended))]]

    def _candidates(self, values: NDArray[np.float32], ids: NDArray[np.int32]) -> list[_Candidate]:
        """Every prefix with every likely token, the likeliest first."""
        found = [
            _Candidate(Text((*prefix.tokens, token), prefix.total + value), row)
            for row, prefix in enumerate(self.rows)
            if prefix is not None
            for value, token in zip(values[row].tolist(), ids[row].tolist(), strict=True)
            if value > NEVER
        ]
        return sorted(found, key=lambda candidate: -candidate.text.total)

    def _place(self, kept: list[_Candidate]) -> list[int]:
        self.rows, sources = [None] * self.size, list(range(self.size))
        waiting = []
        for candidate in kept:
            if self.rows[candidate.row] is None:
                self.rows[candidate.row] = candidate.text
            else:
                waiting.append(candidate)
        free = [row for row, text in enumerate(self.rows) if text is None]
        for row, candidate in zip(free, waiting, strict=False):
            self.rows[row], sources[row] = candidate.text, candidate.row
        return sources
