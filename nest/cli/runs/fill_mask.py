"""`nest run` for masked tokens: texts with a mask in, what may stand there out."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli._format import columns
from nest.cli.runs._items import Answer, Item, sample_items, texts_of
from nest.registry import Entry

__all__ = ["answer", "prepare"]


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The texts that were given, or the prompts of the entry's samples."""
    if not args.inputs:
        samples = sample_items(entry, "a TEXT")
        return [Item(s.prompt, s.prompt, s) for s in samples if s.prompt is not None]
    return [Item(text, text) for text in texts_of(args.inputs)]


def answer(task: Any, item: Item, args: argparse.Namespace) -> Answer:
    """The likeliest tokens of each mask."""
    made = task(item.source, top=getattr(args, "top", 5))
    lines = [columns([(f"{c.probability:.4f}", c.token, c.text) for c in choices]) for choices in made.masks]
    facts = {"text": made.text, "masks": [[vars(choice) for choice in choices] for choices in made.masks]}
    sample = item.sample
    expected = (sample.text or sample.reference_text) if sample else None
    return Answer("\n\n".join(lines), facts, expected, sample.note if sample else None)
