"""Sessions whose distributions are written down for every prefix, so that the best text is known by trying them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Logits = Callable[[tuple[int, ...]], np.ndarray]


class TableSession:
    """A session whose caches are the tokens that each row has seen after the prompt.

    It refuses a step that leaves out a slot. `moved` holds what was asked of `reorder`, `made` every fork.

    Args:
        tables: for each row, the logits [Vocab] after a prefix without the prompt.
    """

    def __init__(self, tables: Sequence[Logits]) -> None:
        self.tables = list(tables)
        self.seen: list[tuple[int, ...]] = [()] * len(self.tables)
        self.starts = np.zeros(len(self.tables), np.int32)
        self.moved: list[list[int]] = []
        self.made: list[TableSession] = []
        self.prefills = self.steps = 0

    def listen(self, mel: np.ndarray) -> None:
        self.mels = mel

    def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        self.prefills += 1
        self.starts = np.full(len(tokens), tokens.shape[1]) if lengths is None else lengths
        self.seen = [()] * len(tokens)
        return self.logits()

    def step(self, token: np.ndarray, pos: np.ndarray) -> np.ndarray:
        self.steps += 1
        for row, (new, at) in enumerate(zip(token[:, 0].tolist(), pos - self.starts, strict=True)):
            if at > len(self.seen[row]):
                raise ValueError((row, at, self.seen[row]))
            self.seen[row] = (*self.seen[row][:at], new)
        return self.logits()

    def logits(self) -> np.ndarray:
        return np.stack([table(seen) for table, seen in zip(self.tables, self.seen, strict=True)])

    def numpy(self, x: np.ndarray) -> np.ndarray:
        return x

    def fork(self, rows: Sequence[int]) -> TableSession:
        other = TableSession([self.tables[row] for row in rows])
        other.take_from(self, rows)
        self.made.append(other)
        return other

    def take_from(self, other: TableSession, rows: Sequence[int]) -> None:
        if len(rows) != len(self.tables):
            raise ValueError((rows, len(self.tables)))
        self.tables = [other.tables[row] for row in rows]
        self.seen = [other.seen[row] for row in rows]
        self.starts = np.array([other.starts[row] for row in rows])

    def reorder(self, rows: Sequence[int], *, slots_only: bool = False) -> None:
        if not slots_only:
            raise ValueError("beams share their recording")
        self.moved.append(list(rows))
        self.seen = [self.seen[row] for row in rows]


def drawn(seed: int, vocabulary: int, spread: float = 2.0) -> Logits:
    """Logits of a random number generator that the seed and the prefix begin."""

    def logits(seen: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng([seed, len(seen), *seen])
        return (spread * rng.standard_normal(vocabulary)).astype(np.float32)

    return logits


def written(table: dict[tuple[int, ...], dict[int, float]], vocabulary: int) -> Logits:
    """Logits from probabilities of some tokens after some prefixes; others are as good as impossible."""

    def logits(seen: tuple[int, ...]) -> np.ndarray:
        found: Any = np.full(vocabulary, -40.0, np.float32)
        for token, probability in table.get(seen, {}).items():
            found[token] = np.log(probability)
        return found

    return logits
