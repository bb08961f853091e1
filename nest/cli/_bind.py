"""`nest bind`: bindings proposed from names and shapes."""

from __future__ import annotations

import argparse
import json
import sys

from nest.adopting.suggest import Suggestions
from nest.adopting.suggested import suggestions_for, write_certain
from nest.checking import Checkpoints
from nest.cli._format import columns, json_text
from nest.registry import find

__all__ = ["main"]

USAGE = 2


def main(args: argparse.Namespace) -> int:
    if not (args.suggest or args.write):
        sys.stderr.write("nest: error: Say what to do: --suggest, or --write. See: nest bind --help\n")
        return USAGE
    entry = find(args.name)
    found = suggestions_for(
        entry, trust_source=args.trust_source, checkpoints=Checkpoints(offline=args.offline)
    )
    added = write_certain(entry, found) if args.write else []
    if args.json:
        print(json_text(_facts(found, added)))
    else:
        print(_text(found))
        if args.write:
            print(f"Wrote {len(added)} of them into {entry.directory / 'bindings.json'}.")
    return int(bool(found.unmatched_params))


def _text(found: Suggestions) -> str:
    rows = [(one.confidence, one.path, _value(one.value)) for one in found.proposals]
    parts = [columns(rows)] if rows else []
    for title, names in (
        ("Parameters without a tensor", found.unmatched_params),
        ("Tensors without a parameter", found.unmatched_tensors),
    ):
        if names:
            parts.append("\n".join([f"{title}:", *(f"  {name}" for name in names)]))
    return "\n\n".join(parts)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _facts(found: Suggestions, added: list[str]) -> dict[str, object]:
    return {
        "proposals": [
            {"path": one.path, "value": one.value, "confidence": one.confidence} for one in found.proposals
        ],
        "unmatched_parameters": found.unmatched_params,
        "unmatched_tensors": found.unmatched_tensors,
        "written": added,
    }
