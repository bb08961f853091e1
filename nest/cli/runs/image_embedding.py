"""`nest run` for image embedding: pictures in, vectors out."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli.runs._items import Answer, Item
from nest.cli.runs._pictures import pictures
from nest.registry import Entry

__all__ = ["answer", "prepare"]


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The pictures that were named, or those of the entry's samples."""
    return pictures(entry, args)


def answer(task: Any, item: Item, args: argparse.Namespace) -> Answer:
    """The vector of a picture."""
    vector = [round(float(x), 6) for x in task(item.source)]
    sample = item.sample
    text = " ".join(f"{x:.6g}" for x in vector)
    if sample is None:
        return Answer(text, {"embedding": vector})
    shown = f"{len(vector)} numbers: {' '.join(text.split()[:4])} ..."
    return Answer(shown, {"embedding": vector}, sample.text or sample.reference_text, sample.note)
