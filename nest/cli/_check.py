"""`nest check` and `nest lint`: reports of entries, and an exit code that says whether all is well."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from nest.checking import Checkpoints, Report, check
from nest.cli._format import columns, json_text, width, wrapped
from nest.errors import InputError
from nest.registry import names

__all__ = ["chosen", "main", "write"]


def main(args: argparse.Namespace) -> int:
    checkpoints = Checkpoints(offline=args.offline)

    def one(name: str) -> Report:
        return check(
            name,
            trust_source=args.trust_source,
            require_headers=args.require_headers,
            write_tensors=args.write_tensors,
            checkpoints=checkpoints,
        )

    return write((one(name) for name in chosen(args)), as_json=args.json)


def chosen(args: argparse.Namespace) -> list[str]:
    """The entries that were asked for: by name, all of them, or the working directory's.

    Raises:
        InputError: none was asked for.
    """
    if args.all:
        return [*names(), *args.names]
    if args.names:
        return list(args.names)
    if Path("nest.toml").is_file():
        return ["."]
    raise InputError(
        "Give the name of an entry or the path of its folder, or --all; this folder is not an entry."
    )


def write(reports: Iterable[Report], *, as_json: bool) -> int:
    """Print each report as it comes; 1 where one has a fault."""
    done: list[Report] = []
    for report in reports:
        done.append(report)
        if not as_json:
            print(_text(report), flush=True)
    if as_json:
        print(json_text([report.facts() for report in done]))
    elif len(done) > 1:
        print(_summary(done))
    return int(any(report.faults for report in done))


_MARKS: dict[str, str] = {"ok": "ok", "note": "note", "fault": "FAULT"}


def _text(report: Report) -> str:
    rows = [(_MARKS[finding.level], finding.part, str(finding)) for finding in report.findings]
    return f"{report.name}\n{_wrapped(rows)}"


def _wrapped(rows: list[tuple[str, str, str]]) -> str:
    """The rows as columns, the last of them wrapped."""
    room = max(30, width() - sum(max(len(row[i]) for row in rows) for i in range(2)) - 6)
    lines: list[tuple[str, str, str]] = []
    for mark, part, message in rows:
        pieces = [piece for line in message.splitlines() for piece in wrapped(line, room) or [""]]
        lines += [(mark, part, pieces[0]), *(("", "", piece) for piece in pieces[1:])]
    return columns(lines, indent=2)


def _summary(done: list[Report]) -> str:
    wrong = [report for report in done if report.faults]
    if not wrong:
        return f"{len(done)} entries: no fault."
    return f"{len(done)} entries, {len(wrong)} with faults: {', '.join(report.name for report in wrong)}"
