"""`nest run` for speech to text: recordings in, what they say out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nest.cli._entry import sample_file
from nest.cli.runs._items import Answer, Item, sample_items, standard_input
from nest.registry import Entry
from nest.tasks.audio import load

__all__ = ["answer", "prepare"]


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The recordings that were named, or the entry's samples."""
    if not args.inputs:
        samples = sample_items(entry, "a FILE")
        return [Item(sample.audio or "?", str(sample_file(entry, sample)), sample) for sample in samples]
    items = [Item(name, standard_input() if name == "-" else name) for name in args.inputs]
    _refuse_missing(items)
    return items


def _refuse_missing(items: list[Item]) -> None:
    """Say of the only recording that it is not there before a model is fetched for it."""
    source = items[0].source
    if len(items) > 1 or not isinstance(source, str):
        return
    try:
        there = Path(source).exists()
    except (OSError, ValueError):  # too long, or no path at all
        there = False
    if not there:
        load(source)  # which says why


def answer(task: Any, item: Item, args: argparse.Namespace) -> Answer:
    """The transcript of a recording."""
    made = task(
        item.source, language=getattr(args, "language", None), task=getattr(args, "task", "transcribe")
    )
    facts = {
        "text": made.text,
        "language": made.language,
        "duration": round(made.duration, 3),
        "segments": [
            {"start": round(segment.start, 3), "end": round(segment.end, 3), "text": segment.text}
            for segment in made.segments
        ],
    }
    sample = item.sample
    if sample is None:
        return Answer(made.text, facts)
    return Answer(made.text, facts, sample.text or sample.reference_text, sample.note)
