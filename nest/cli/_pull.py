"""`nest pull`: have the files of entries on disk, verified."""

from __future__ import annotations

import argparse
from typing import Any

from nest._env import check_environment
from nest.cli._entry import required_files
from nest.cli._fetching import announce_fetch
from nest.cli._format import columns, file_size, json_text, paragraph
from nest.registry import Entry, find
from nest.weights import Fetched, fetch


def main(args: argparse.Namespace) -> int:
    check_environment()
    chosen = [find(name) for name in args.names]  # a wrong name is said before anything is fetched
    pulled = []
    for entry in chosen:
        if not args.offline:
            announce_fetch(entry)
        fetched = fetch(entry, local_files_only=args.offline)
        pulled.append(_facts(entry, fetched))
        if not args.json:
            print(_report(entry, fetched))
    if args.json:
        print(json_text(pulled))
    return 0


def _report(entry: Entry, fetched: Fetched) -> str:
    rows = [
        (name, file_size(path.stat().st_size), f"from {fetched.origins[name]}")
        for name, path in fetched.files.items()
    ]
    notes = [paragraph(note, indent=2) for note in fetched.notes]
    return "\n".join([f"{entry.name}: verified", columns(rows, indent=2), *notes])


def _facts(entry: Entry, fetched: Fetched) -> dict[str, Any]:
    pinned = {spec.name: spec for spec in required_files(entry)}
    files = [
        {
            "name": name,
            "path": path,
            "size": path.stat().st_size,
            "pinned_sha256": pinned[name].sha256,
            "origin": fetched.origins[name],
        }
        for name, path in fetched.files.items()
    ]
    license_ = entry.manifest.model.license
    return {"entry": entry.name, "license": license_, "files": files, "notes": fetched.notes}
