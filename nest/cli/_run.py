"""`nest run`: the whole job of a model, over what is given or over the entry's sample."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from nest._env import check_environment
from nest.cli._fetching import announce_fetch
from nest.cli._format import columns, json_text, plain
from nest.cli._run_options import foreign
from nest.cli._shared_options import told_quantization, weights_as
from nest.cli.runs._items import Answer, Item
from nest.errors import CallError, InputError, ManifestError, NestError
from nest.loading import chosen_backend
from nest.registry import Entry, find
from nest.tasks import pipeline
from nest.tasks._kinds import Kind, kind_of

__all__ = ["main"]

USAGE = 2


def main(args: argparse.Namespace) -> int:
    check_environment()
    entry = find(args.name)
    try:
        kind = kind_of(entry, args.kind)
    except CallError as error:
        return _misused(str(error))
    for option, kinds in foreign(args, kind.name):
        return _misused(f"{option} is for {' and '.join(kinds)}, and '{entry.name}' does {kind.name}.")
    how = import_module(f"nest.cli.runs.{kind.module}")
    try:
        items: list[Item] = how.prepare(entry, args)
    except CallError as error:
        return _misused(str(error))
    if not items:
        raise InputError(
            f"No sample of '{entry.name}' is for {kind.name}: give an INPUT. See: nest run --help"
        )
    if not (entry.trusted or args.trust_source):
        raise ManifestError(entry.refusal)  # before anything is fetched for it
    if not args.offline:
        announce_fetch(entry)
    task = pipeline(
        args.name,
        task=args.kind,
        backend=_announced(kind, args) if args.backend is None else args.backend,
        plan=args.plan,
        **weights_as(args),
        local_files_only=args.offline,
        trust_source=args.trust_source or None,
    )
    told_quantization(task)
    failed = 0
    for position, item in enumerate(items):
        try:
            _write(entry, item, how.answer(task, item, args), args, len(items), position)
        except NestError as error:
            if len(items) == 1:
                raise
            # One bad input among many is named, and the others are still done.
            named = bool(item.label) and item.label in str(error)
            where = "" if named else f"Input {position + 1} of {len(items)}: "
            sys.stderr.write(f"nest: error: {plain(f'{where}{error}')}\n")
            failed = 1
    return failed


def _misused(message: str) -> int:
    sys.stderr.write(f"nest: error: {message} See: nest run --help\n")
    return USAGE


def _announced(kind: Kind, args: argparse.Namespace) -> str:
    """The backend of a run that names none, said on standard error."""
    backend = chosen_backend(extras=kind.extras, dtype=args.dtype)
    sys.stderr.write(f"Running on {backend}, plan {args.plan}; --backend and --plan choose others.\n")
    return backend


def _write(
    entry: Entry, item: Item, answer: Answer, args: argparse.Namespace, count: int, position: int
) -> None:
    pieces = answer.pieces or ()
    if args.json:
        for _ in pieces:
            pass
        _print(json_text(_facts(entry, item, answer), indent=None))
    elif item.sample is not None:
        told = "".join(pieces) or answer.text
        expected = answer.expected or answer.note or "not known"
        rows = columns([(item.label, told), ("expected", expected)])
        between = "\n" if position else ""
        _print(between + (f"{told}\n\nexpected\n{expected}" if "\n" in told else rows))
    else:
        if count > 1:
            _print(("\n" if position else "") + item.label)
        if answer.pieces is None:
            _print(answer.text)
            return
        for piece in pieces:
            print(piece, end="", flush=True)
        _print("")


def _facts(entry: Entry, item: Item, answer: Answer) -> dict[str, Any]:
    facts: dict[str, Any] = {"file": item.label, "model": entry.name, **answer.facts}
    if item.sample is not None:
        facts["expected"] = answer.expected
    return facts


def _print(text: str) -> None:
    print(text, flush=True)  # a long list of inputs is read while it grows
