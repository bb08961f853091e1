"""`nest list`: the entries of the zoo."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from nest.cli._entry import task_of, weights_size
from nest.cli._format import columns, file_size, json_text, width
from nest.registry import Entry, entries

_HEADING = ("NAME", "TASK", "SIZE", "LICENCE", "TITLE")


def main(args: argparse.Namespace) -> int:
    everything = entries()
    chosen = [entry for entry in everything if _matches(entry, args)]
    if args.json:
        print(json_text([_facts(entry) for entry in chosen]))
    elif chosen:
        print(_table(chosen))
    else:
        sys.stderr.write(_nothing(everything))
    return 0


def _matches(entry: Entry, args: argparse.Namespace) -> bool:
    family, task = args.family, args.task
    return family in (None, entry.manifest.model.family) and task in (None, task_of(entry))


def _table(chosen: list[Entry]) -> str:
    rows = [_HEADING, *(_row(entry) for entry in chosen)]
    taken = sum(max(len(row[i]) for row in rows) + 2 for i in range(len(_HEADING) - 1))
    return columns(rows, last=width() - taken)


def _row(entry: Entry) -> tuple[str, ...]:
    model = entry.manifest.model
    return (entry.name, task_of(entry) or "-", file_size(weights_size(entry)), model.license, model.title)


def _facts(entry: Entry) -> dict[str, Any]:
    model = entry.manifest.model
    return {
        "name": entry.name,
        "title": model.title,
        "summary": model.summary,
        "task": task_of(entry),
        "family": model.family,
        "tags": model.tags,
        "license": model.license,
        "size": weights_size(entry),
    }


def _nothing(everything: list[Entry]) -> str:
    if not everything:
        return "The zoo has no entries.\n"
    families = sorted({entry.manifest.model.family for entry in everything})
    tasks = sorted({task for entry in everything if (task := task_of(entry))})
    return f"No entry matches. Families: {', '.join(families)}. Tasks: {', '.join(tasks)}.\n"
