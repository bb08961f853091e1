"""`nest run` for speech to text: recordings in, what they say out."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nest.cli._entry import sample_file
from nest.cli._format import columns
from nest.cli._spoken import refuse_foreign
from nest.cli.runs._items import Answer, Item, sample_items, standard_input
from nest.registry import Entry
from nest.tasks.audio import load
from nest.tasks.transcribe import Segment, Transcript

__all__ = ["answer", "prepare"]


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The recordings that were named, or the entry's samples.

    Raises:
        CallError: the model does not have the language or the task that was asked for.
    """
    refuse_foreign(entry, getattr(args, "language", None), getattr(args, "task", "transcribe"))
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
    asked = {"word_timestamps": True} if hasattr(args, "word_timestamps") else {}
    made = task(
        item.source,
        language=getattr(args, "language", None),
        task=getattr(args, "task", "transcribe"),
        **asked,
    )
    likely = made.language_probability
    facts = {
        "text": made.text,
        "language": made.language,
        "language_probability": None if likely is None else round(likely, 4),
        "duration": round(made.duration, 3),
        "segments": [_segment(segment, words=bool(asked)) for segment in made.segments],
    }
    sample = item.sample
    text = _timed(made) if asked else made.text
    if sample is None:
        return Answer(text, facts)
    return Answer(text, facts, sample.text or sample.reference_text, sample.note)


def _segment(segment: Segment, *, words: bool) -> dict[str, Any]:
    facts = {"start": round(segment.start, 3), "end": round(segment.end, 3), "text": segment.text}
    if not words:
        return facts
    timed = [
        {
            **asdict(w),
            "start": round(w.start, 3),
            "end": round(w.end, 3),
            "probability": round(w.probability, 4),
        }
        for w in segment.words
    ]
    return {**facts, "words": timed}


def _timed(made: Transcript) -> str:
    """A line for each word: when it begins and ends, in seconds."""
    rows = [
        (f"{word.start:.2f}", f"{word.end:.2f}", word.text.strip())
        for segment in made.segments
        for word in segment.words
    ]
    return columns(rows)
