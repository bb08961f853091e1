"""`nest catalog build`: the pages of the catalog, from the registry. `nest catalog sample`: outputs for its samples."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nest.cli._format import json_text


def main(args: argparse.Namespace) -> int:
    if (args.action == "sample") != bool(args.names):
        wanted = (
            "needs the NAME of an entry" if args.action == "sample" else "takes no NAME: it writes all pages"
        )
        sys.stderr.write(f"nest: error: nest catalog {args.action} {wanted}. See: nest catalog --help\n")
        return 2
    return _sample(args) if args.action == "sample" else _build(args)


def _sample(args: argparse.Namespace) -> int:
    from nest.catalog.sampling import library_version, measure, references, write
    from nest.registry import find

    for name in args.names:
        entry = find(name)
        others = None if args.no_reference else references(entry)
        made = measure(
            entry,
            backend=args.backend,
            references=others,
            library=None if others is None else library_version(entry),
        )
        file = write(entry, made)
        print(
            json_text({"file": file, "samples": len(made)}) if args.json else f"{file}: {len(made)} measured."
        )
    return 0


def _build(args: argparse.Namespace) -> int:
    from nest.catalog import build

    folder = Path(args.out).expanduser()
    report = build(folder, progress=_progress())
    if args.json:
        facts: dict[str, Any] = {
            "folder": report.folder.absolute(),
            "written": report.written,
            "kept": report.kept,
            "removed": report.removed,
        }
        print(json_text(facts))
        return 0
    said = [f"{len(report.written)} written", f"{len(report.kept)} as they were"]
    said += [f"{len(report.removed)} removed"] if report.removed else []
    print(f"{folder}: pages of {len(report.written) + len(report.kept)} entries, {', '.join(said)}.")
    return 0


def _progress() -> Any:
    """A line that says where the build is, on a terminal only."""
    if not sys.stderr.isatty():
        return None

    def show(name: str, number: int, total: int) -> None:
        end = "\n" if number == total else ""
        sys.stderr.write(f"\r\x1b[K[{number}/{total}] {name}{end}")
        sys.stderr.flush()

    return show
