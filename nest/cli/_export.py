"""`nest export`: a model as a folder, for nest or for programs that know nothing of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from nest._env import check_environment
from nest.cli._fetching import announce_fetch
from nest.cli._format import columns, file_size, json_text
from nest.export import save
from nest.loading import load
from nest.registry import find

__all__ = ["main"]


def main(args: argparse.Namespace) -> int:
    check_environment()
    entry = find(args.name)
    trust = args.trust_source or None
    if not (trust or entry.trusted):
        entry.definition()  # says what would run, before anything is fetched
    if args.weights is None and not args.offline:
        announce_fetch(entry)
    # The reference backend holds arrays as they are and needs no framework.
    model = load(
        entry,
        backend="reference",
        weights="pinned" if args.weights is None else args.weights,
        dtype=args.dtype,
        trust_source=trust,
        local_files_only=args.offline,
    )
    files = save(
        model,
        args.directory,
        args.format,
        opset=args.opset,
        platforms=args.platforms,
        local_files_only=args.offline,
    )
    print(_json(files) if args.json else _text(files, args.format))
    return 0


def _text(files: list[Path], format: str) -> str:
    rows = [(str(path), file_size(path.stat().st_size)) for path in files]
    folder = files[0].parent
    usage = {
        "run.py": f"python {folder / 'run.py'} talk.wav",
        "io.json": f"{folder / 'io.json'} says how it is called.",
    }
    names = {path.name for path in files}
    hint = next((text for name, text in usage.items() if name in names), None)
    return columns(rows) + (f"\n\n{hint}" if hint else "")


def _json(files: list[Path]) -> str:
    return json_text([{"file": str(path), "size": path.stat().st_size} for path in files])
