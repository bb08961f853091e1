"""`nest pull --dry-run`: what would come from where, for those who open firewalls and read licences."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli._format import columns, file_size, json_text
from nest.registry import Entry
from nest.weights.planned import PlannedFile, plan_fetch

__all__ = ["dry_run"]

_HEADING = ("ENTRY", "FILE", "SIZE", "LICENCE", "HOST", "SHA256")


def dry_run(chosen: list[Entry], args: argparse.Namespace) -> int:
    """Print a row for each required file of `chosen`."""
    files = [file for entry in chosen for file in plan_fetch(entry, cache_dir=args.cache_dir, lock=args.lock)]
    if args.json:
        print(json_text([_facts(file) for file in files]))
        return 0
    print(columns([_HEADING, *(_row(file) for file in files)]))
    sizes = [file.size or 0 for file in files if file.path is None]
    print(f"{len(sizes)} of {len(files)} files would be fetched, {file_size(sum(sizes))}.")
    return 0


def _row(file: PlannedFile) -> tuple[str, ...]:
    where = "here already" if file.path is not None else file.host or "no source"
    return (file.entry, file.name, file_size(file.size), file.license, where, file.sha256 or "not pinned")


def _facts(file: PlannedFile) -> dict[str, Any]:
    return {
        "entry": file.entry,
        "host": file.host,
        "file": file.name,
        "size": file.size,
        "sha256": file.sha256,
        "license": file.license,
        "path": file.path,
        "sources": [
            {"kind": place.kind, "host": place.host, "location": place.location} for place in file.places
        ],
    }
