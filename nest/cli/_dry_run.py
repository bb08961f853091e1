"""`nest pull --dry-run`: what would come from where, for those who open firewalls and read licences."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from nest.cli._format import columns, file_size, json_text
from nest.registry import Entry
from nest.weights.hub import hub_offline
from nest.weights.planned import PlannedFile, plan_fetch

__all__ = ["dry_run"]

_HEADING = ("ENTRY", "FILE", "SIZE", "LICENCE", "HOST", "SHA256")


def dry_run(chosen: list[Entry], args: argparse.Namespace) -> int:
    """Print a row for each required file of `chosen`. The code is 1 where the pull would fail without asking anyone."""
    files = [
        file
        for entry in chosen
        for file in plan_fetch(
            entry, cache_dir=args.cache_dir, lock=args.lock, require_hashes=args.require_hashes
        )
    ]
    offline = args.offline or hub_offline()
    missing = [file for file in files if file.path is None]
    coming = [] if offline else [file for file in missing if file.asked]
    if args.json:
        print(json_text([_facts(file) for file in files]))
    else:
        print(columns([_HEADING, *(_row(file, offline=offline) for file in files)]))
        size = file_size(sum(file.size or 0 for file in coming))
        print(f"{len(coming)} of {len(files)} files would be fetched, {size}.")
    if lacking := len(missing) - len(coming):
        why = "the network is not to be asked" if offline else "no source that is allowed has them"
        sys.stderr.write(f"nest: error: {lacking} of {len(files)} files could not be fetched: {why}.\n")
        return 1
    return 0


def _row(file: PlannedFile, *, offline: bool) -> tuple[str, ...]:
    license_ = file.asked[0].license if file.asked else file.license
    where = _where(file, offline=offline)
    return (file.entry, file.name, file_size(file.size), license_, where, file.sha256 or "not pinned")


def _where(file: PlannedFile, *, offline: bool) -> str:
    if file.path is not None:
        return "here already"
    if offline:
        return "not here"
    hosts = dict.fromkeys(place.host or "an index without a host" for place in file.asked)
    return ", then ".join(hosts) or "no source"


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
            {
                "kind": place.kind,
                "host": place.host,
                "location": place.location,
                "license": place.license,
                "size": place.size,
                "sha256": place.sha256,
            }
            for place in file.places
        ],
    }
