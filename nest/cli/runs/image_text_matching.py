"""`nest run` for pictures and texts: pictures in, the probability of each text that `--text` names out."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli._format import columns
from nest.cli.runs._items import Answer, Item
from nest.cli.runs._pictures import pictures
from nest.errors import InputError
from nest.registry import Entry

__all__ = ["answer", "prepare"]


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The pictures that were named, or those of the entry's samples.

    Raises:
        InputError: pictures were named, and no text.
    """
    if args.inputs and not getattr(args, "text", None):
        raise InputError(
            f"'{entry.name}' says how well a picture and texts go together: give each text with --text, as in "
            f"--text 'a photo of a cat' --text 'a photo of a dog'."
        )
    return pictures(entry, args)


def answer(task: Any, item: Item, args: argparse.Namespace) -> Answer:
    """The probability of each text, the likeliest first."""
    sample = item.sample
    texts = getattr(args, "text", None) or (sample.texts if sample else None) or []
    found = task(item.source, texts)
    pairs = sorted(zip(texts, map(float, found), strict=True), key=lambda pair: -pair[1])
    facts = {"texts": [{"text": text, "score": round(score, 6)} for text, score in pairs]}
    if sample is None:
        return Answer(columns([(f"{score:.3f}", text) for text, score in pairs]), facts)
    shown = "; ".join(f"{score:.3f} {text}" for text, score in pairs)
    return Answer(shown, facts, sample.text or sample.reference_text, sample.note)
