"""`nest catalog build`: the pages of the catalog, from the registry."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nest.cli._format import json_text


def main(args: argparse.Namespace) -> int:
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
    import sys

    if not sys.stderr.isatty():
        return None

    def show(name: str, number: int, total: int) -> None:
        end = "\n" if number == total else ""
        sys.stderr.write(f"\r\x1b[K[{number}/{total}] {name}{end}")
        sys.stderr.flush()

    return show
