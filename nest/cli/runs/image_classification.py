"""`nest run` for image classification: pictures in, their likeliest classes out."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli._format import columns
from nest.cli.runs._items import Answer, Item
from nest.cli.runs._pictures import pictures
from nest.registry import Entry

__all__ = ["answer", "prepare"]


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The pictures that were named, or those of the entry's samples."""
    return pictures(entry, args)


def answer(task: Any, item: Item, args: argparse.Namespace) -> Answer:
    """The likeliest classes of a picture."""
    found = task(item.source, top=getattr(args, "top", 5))
    facts = {"labels": [{"label": f.label, "score": round(f.score, 6), "index": f.index} for f in found]}
    text = columns([(f"{f.score:.3f}", f.label) for f in found])
    sample = item.sample
    if sample is None:
        return Answer(text, facts)
    return Answer("; ".join(f.label for f in found), facts, sample.text or sample.reference_text, sample.note)
