"""`nest pull`: have the files of entries on disk, verified."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nest._env import check_environment
from nest.cli._all_entries import read_entries
from nest.cli._format import columns, file_size, json_text, paragraph
from nest.errors import NestError
from nest.registry import Entry, entries, find
from nest.weights import Fetched, fetch

USAGE = 2


def main(args: argparse.Namespace) -> int:
    if bool(args.names) == args.all:
        fault = (
            "--all and NAME exclude each other" if args.all else "The following arguments are required: NAME"
        )
        sys.stderr.write(f"nest: error: {fault}. See: nest pull --help\n")
        return USAGE
    check_environment()
    # A wrong name is said before anything is fetched.
    chosen = _all() if args.all else [find(name) for name in args.names]
    if args.dry_run:
        from nest.cli._dry_run import dry_run

        return dry_run(chosen, args)
    return _pull(chosen, args)


def _all() -> list[Entry]:
    found, faults = read_entries(entries)
    for fault in faults:
        sys.stderr.write(f"nest: {fault}\n")
    return [entry for entry in found if entry.manifest.weights is not None]


def _pull(chosen: list[Entry], args: argparse.Namespace) -> int:
    pulled, failed = [], 0
    for entry in chosen:
        try:
            pulled.append(_facts(entry, *_pull_one(entry, args)))
        except NestError as error:
            if len(chosen) == 1:
                raise
            # One that fails among many is named, and the others still come.
            sys.stderr.write(f"nest: error: {error}\n")
            failed = 1
    if args.json:
        print(json_text(pulled))
    elif args.local_dir and pulled:
        print(_how_to_use(Path(args.local_dir), pulled[0]["entry"]))
    return failed


def _pull_one(entry: Entry, args: argparse.Namespace) -> tuple[Fetched, dict[str, Path]]:
    fetched = fetch(
        entry,
        local_files_only=args.offline,
        cache_dir=args.cache_dir,
        lock=args.lock,
        require_hashes=args.require_hashes,
    )
    copies: dict[str, Path] = {}
    if args.local_dir and entry.manifest.weights is not None:
        from nest.weights._files import user_path
        from nest.weights.local_copy import copy_to

        copies = copy_to(user_path(args.local_dir, "--local-dir").absolute(), entry.manifest.weights, fetched)
    if not args.json:
        print(_report(entry, fetched, copies), flush=True)
    return fetched, copies


def _report(entry: Entry, fetched: Fetched, copies: dict[str, Path]) -> str:
    rows = [
        (name, file_size(path.stat().st_size), f"from {fetched.origins[name]}")
        for name, path in fetched.files.items()
    ]
    notes = [paragraph(note, indent=2) for note in fetched.notes]
    done = "verified, and copied" if copies else "verified"
    return "\n".join([f"{entry.name}: {done}", columns(rows, indent=2), *notes])


def _how_to_use(folder: Path, name: str) -> str:
    return f"To use {folder} elsewhere: NEST_CONFIG={folder / 'config.toml'} nest run {name} --offline"


def _facts(entry: Entry, fetched: Fetched, copies: dict[str, Path]) -> dict[str, Any]:
    weights = entry.manifest.weights
    pinned = {spec.name: spec.sha256 for spec in weights.files} if weights else {}
    files = [
        {
            "name": name,
            "path": path,
            "size": path.stat().st_size,
            "pinned_sha256": pinned[name],
            "origin": fetched.origins[name],
            **({"copy": copies[name]} if copies else {}),
        }
        for name, path in fetched.files.items()
    ]
    license_ = entry.manifest.model.license
    return {"entry": entry.name, "license": license_, "files": files, "notes": fetched.notes}
