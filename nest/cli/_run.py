"""`nest run`: the whole job of a model, over files or over the entry's sample."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nest._env import check_environment
from nest.cli._entry import sample_file
from nest.cli._fetching import announce_fetch
from nest.cli._format import columns, json_text
from nest.errors import InputError, ManifestError, NestError
from nest.loading import chosen_backend
from nest.registry import Entry, Sample, find
from nest.tasks import Transcript, pipeline
from nest.tasks.audio import load

__all__ = ["main"]


@dataclass(frozen=True)
class _Input:
    """A recording, what to call it, and the sample that it is of."""

    label: str
    source: str | BinaryIO
    sample: Sample | None = None


def main(args: argparse.Namespace) -> int:
    check_environment()
    entry = find(args.name)
    inputs = _inputs(entry, args.files)
    if not (entry.trusted or args.trust_source):
        raise ManifestError(entry.refusal)  # before anything is fetched for it
    _refuse_missing(inputs)
    if not args.offline:
        announce_fetch(entry)
    transcribe = pipeline(
        args.name,
        backend=_announced() if args.backend is None else args.backend,
        local_files_only=args.offline,
        trust_source=args.trust_source or None,
    )
    failed = 0
    for position, item in enumerate(inputs):
        try:
            transcript = transcribe(item.source, language=args.language, task=args.task)
        except NestError as error:
            if len(inputs) == 1:
                raise
            # One bad file among many is named, and the others are still done.
            sys.stderr.write(f"nest: error: {error}\n")
            failed = 1
            continue
        _write(
            _json(entry, item, transcript) if args.json else _text(item, transcript, len(inputs), position)
        )
    return failed


def _announced() -> str:
    """The backend of a run that names none, said on standard error."""
    backend = chosen_backend(extras=("audio",))
    sys.stderr.write(f"Running on {backend}; --backend chooses another.\n")
    return backend


def _inputs(entry: Entry, files: list[str]) -> list[_Input]:
    if files:
        return [_Input(name, _standard_input() if name == "-" else name) for name in files]
    if not entry.samples:
        raise InputError(f"'{entry.name}' has no sample: give a FILE.")
    return [_Input(sample.audio or "?", str(sample_file(entry, sample)), sample) for sample in entry.samples]


def _refuse_missing(inputs: list[_Input]) -> None:
    """Say of the only recording that it is not there before a model is fetched for it."""
    source = inputs[0].source
    if len(inputs) > 1 or not isinstance(source, str):
        return
    try:
        there = Path(source).exists()
    except (OSError, ValueError):  # too long, or no path at all
        there = False
    if not there:
        load(source)  # which says why


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InputError("'-' is standard input, which whoever started this has closed: give a FILE.")
    return sys.stdin.buffer


def _text(item: _Input, transcript: Transcript, count: int, position: int) -> str:
    if item.sample is not None:
        expected = item.sample.text or item.sample.reference_text or item.sample.note or "not known"
        return columns([(item.label, transcript.text), ("expected", expected)])
    if count == 1:
        return transcript.text
    return ("\n" if position else "") + f"{item.label}\n{transcript.text}"


def _json(entry: Entry, item: _Input, transcript: Transcript) -> str:
    facts: dict[str, Any] = {
        "file": item.label,
        "model": entry.name,
        "text": transcript.text,
        "language": transcript.language,
        "duration": round(transcript.duration, 3),
        "segments": [
            {"start": round(segment.start, 3), "end": round(segment.end, 3), "text": segment.text}
            for segment in transcript.segments
        ],
    }
    if item.sample is not None:
        facts["expected"] = item.sample.text or item.sample.reference_text
    return json_text(facts, indent=None)


def _write(text: str) -> None:
    print(text, flush=True)  # a long list of recordings is read while it grows
