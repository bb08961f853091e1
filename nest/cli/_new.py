"""`nest new`: a folder for a new entry."""

from __future__ import annotations

import argparse
from pathlib import Path

from nest.cli._format import json_text, paragraph

__all__ = ["main"]


def main(args: argparse.Namespace) -> int:
    from nest.adopting.scaffold import new_entry

    folder = Path(args.name).expanduser().absolute()
    draft = new_entry(
        folder.name, like=args.like, source=args.source, revision=args.revision, local_files_only=args.offline
    )
    draft.write(folder)
    if args.json:
        print(
            json_text(
                {"name": draft.name, "folder": folder, "files": list(draft.files()), "notes": draft.notes}
            )
        )
        return 0
    for note in draft.notes:
        print(paragraph(note) if "\n" not in note else note)
    trust = " --trust-source" if draft.definition is not None else ""
    print(f"Wrote {folder}: {', '.join(draft.files())}. Next:")
    steps = [f"nest check {folder}{trust}", f"nest lint {folder}"]
    if draft.bindings is not None:
        steps.insert(0, f"nest bind {folder} --suggest{trust}")
    print("\n".join(f"  {step}" for step in steps))
    return 0
