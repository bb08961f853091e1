"""`nest list`: the entries of the zoo, from their headings alone, so that it answers at once."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import Any

from nest.cli._format import columns, file_size, json_text, width
from nest.errors import CallError, InputError
from nest.registry import Card, cards

USAGE = 2
_HEADING = ("NAME", "TASK", "SIZE", "LICENCE", "TITLE")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def main(args: argparse.Namespace) -> int:
    try:
        limit = None if args.max_size is None else size_of(args.max_size)
        usable = args.backend is None or _can_run(args.backend)
    except (InputError, CallError) as error:  # an option's value: wrong usage
        sys.stderr.write(f"nest: error: {error} See: nest list --help\n")
        return USAGE
    everything, faults = cards()
    chosen = [card for card in everything if usable and _matches(card, args, limit)]
    if args.json:
        print(json_text([_facts(card) for card in chosen]))
    elif chosen:
        print(_table(chosen))
    elif usable:
        sys.stderr.write(_nothing(everything))
    for fault in faults:
        sys.stderr.write(f"nest: left out: {fault}\n")
    return 0


def size_of(text: str) -> int:
    """Bytes of `500MB`, `1.5 GB` or `2000`, in powers of ten as sizes are printed.

    Raises:
        InputError: it is no size.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", text.strip().lower())
    if found is None or len(text) > 40:
        raise InputError(f"--max-size takes a size such as 500MB or 1.5GB; '{text}' came.")
    return int(float(found[1]) * _UNITS[found[2]])


def _can_run(name: str) -> bool:
    from nest.backends.installed import backend  # what other lists need not wait for

    wanted = backend(name)
    if not wanted.installed:
        sys.stderr.write(f"No entry can run on {name} here: it is not installed ({wanted.remedy}).\n")
    return wanted.installed


def _matches(card: Card, args: argparse.Namespace, limit: int | None) -> bool:
    return (
        args.family in (None, card.family)
        and args.task in (None, card.task, *card.also)
        and (args.licence is None or args.licence.lower() == card.license.lower())
        and set(args.tag) <= set(card.tags)
        and (limit is None or (card.size is not None and card.size <= limit))
    )


def _table(chosen: list[Card]) -> str:
    rows = [_HEADING, *(_row(card) for card in chosen)]
    taken = sum(max(len(row[i]) for row in rows) + 2 for i in range(len(_HEADING) - 1))
    # A pipe has no width: nothing is cut that a program may look for.
    return columns(rows, last=width() - taken if sys.stdout.isatty() else None)


def _row(card: Card) -> tuple[str, ...]:
    about = "" if card.size_exact or card.size is None else "~"
    return (card.name, card.task or "-", about + file_size(card.size), card.license, card.title)


def _facts(card: Card) -> dict[str, Any]:
    return {
        "name": card.name,
        "title": card.title,
        "summary": card.summary,
        "task": card.task,
        "also": card.also,
        "family": card.family,
        "tags": card.tags,
        "aliases": card.aliases,
        "license": card.license,
        "size": card.size,
        "size_exact": card.size_exact,
        "repo": card.repo,
        "folder": card.folder,
        "trusted": card.trusted,
    }


def _nothing(everything: list[Card]) -> str:
    if not everything:
        return "The zoo has no entries.\n"
    kinds: dict[str, Iterable[str]] = {
        "Families": (card.family for card in everything),
        "Tasks": (task for card in everything for task in (card.task, *card.also) if task),
        "Tags": (tag for card in everything for tag in card.tags),
        "Licences": (card.license for card in everything),
    }
    known = " ".join(f"{kind}: {', '.join(sorted(set(values)))}." for kind, values in kinds.items())
    return f"No entry matches. {known}\n"
