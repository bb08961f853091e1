"""`nest run` for sentence embedding: texts in, how alike they are out, or their vectors with `--json`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nest.cli._format import columns
from nest.cli.runs._items import Answer, Item, sample_items, texts_of
from nest.registry import Entry

__all__ = ["answer", "prepare"]

_SHOWN = 72


@dataclass
class _Together:
    """Texts that are embedded in one call, whichever of them is asked for first."""

    texts: list[str]
    task: Any = None
    prompt: str | None = None

    @cached_property
    def vectors(self) -> Any:
        return self.task(self.texts, prompt=self.prompt)


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The texts that were given, or the entry's samples: for a person all of them as one item, else one item each."""
    if not args.inputs:
        samples = [s for s in sample_items(entry, "a TEXT") if s.texts]
        return [Item("texts", (_Together(s.texts or []), None), s) for s in samples]
    texts = texts_of(args.inputs)
    together = _Together(texts)
    if args.json:
        return [Item(text, (together, index)) for index, text in enumerate(texts)]
    return [Item("texts", (together, None))]


def answer(task: Any, item: Item, args: argparse.Namespace) -> Answer:
    """The vector of one text, or the cosine of each text to each."""
    together, index = item.source
    together.task, together.prompt = task, getattr(args, "prompt", None)
    vectors = together.vectors
    if index is not None or len(together.texts) == 1:
        vector = [round(float(x), 7) for x in vectors[index or 0]]
        return Answer(
            " ".join(f"{x:.6f}" for x in vector), {"text": together.texts[index or 0], "vector": vector}
        )
    matrix = [[round(float(x), 6) for x in row] for row in task.similarity(vectors)]
    facts = {"texts": together.texts, "similarity": matrix}
    sample = item.sample
    expected = (sample.reference_matrix or sample.matrix) if sample else None
    return Answer(_table(matrix, together.texts), facts, None if expected is None else _numbers(expected))


def _table(matrix: list[list[float]], texts: list[str]) -> str:
    """The cosines, and which number is which text."""
    named = columns([(str(i), text) for i, text in enumerate(texts, 1)], last=_SHOWN)
    return f"{_numbers(matrix)}\n\n{named}"


def _numbers(matrix: list[list[float]]) -> str:
    head = ["", *(str(i).rjust(6) for i in range(1, len(matrix) + 1))]
    rows = [[str(i), *(f"{x:6.3f}" for x in row)] for i, row in enumerate(matrix, 1)]
    return columns([head, *rows])
