"""`nest adopt`: an entry of a checkpoint that no entry lists, said in full and bound to its weights."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nest._env import check_environment
from nest.adopting import Adopted, adopted_entry
from nest.cli._format import columns, file_size, json_text, paragraph
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.registry import Entry, find
from nest.weights import bind, fetch, open_checkpoint

__all__ = ["main"]


def main(args: argparse.Namespace) -> int:
    check_environment()
    adopted = adopted_entry(args.source, revision=args.revision, local_files_only=args.offline)
    notes = [*adopted.notes]
    entry = adopted.entry
    if not args.no_weights:
        notes += _bound(entry, offline=args.offline)
    if args.write is not None:
        entry = find(adopted.draft.write(Path(args.write).expanduser()).resolve())
    if args.json:
        print(json_text(_facts(adopted, entry, notes)))
    else:
        print(_text(adopted, entry, notes, written=args.write is not None))
    return 0


def _bound(entry: Entry, *, offline: bool) -> list[str]:
    """Fetch the weights and bind them, with every tie compared; what a person should know of them."""
    fetched = fetch(entry, local_files_only=offline)
    program = program_of(entry)
    sizes = {name: value.value for name, value in program.root.generics.items()}
    known = {name: value for name, value in sizes.items() if isinstance(value, int | str)}
    checkpoint = open_checkpoint(
        [path for name, path in fetched.files.items() if name.endswith(".safetensors")]
    )
    bind(parameters(program), entry.bindings, checkpoint, source=entry.name, generics=known)
    return list(fetched.notes)


def _text(adopted: Adopted, entry: Entry, notes: list[str], *, written: bool) -> str:
    sizes = [f"{name} = {value}" for name, value in adopted.draft.manifest["generics"].items()]
    files = adopted.draft.manifest["weights"]["files"]
    rows = [(spec["name"], file_size(spec.get("size")), spec.get("sha256", "")) for spec in files]
    use = [f'nest.load("{entry.directory}", backend="torch")']
    if entry.manifest.task is not None:
        use.append(f'nest.pipeline("{entry.directory}")')
    told = [
        *(paragraph(note) for note in notes),
        "",
        paragraph(", ".join(sizes), indent=2),
        "",
        columns(rows, indent=2),
    ]
    end = (
        f"Wrote {entry.directory}; nest lint {entry.directory} lists what is left to write."
        if written
        else "Use it:"
    )
    return "\n".join([*told, "", end, *(f"  {line}" for line in use)])


def _facts(adopted: Adopted, entry: Entry, notes: list[str]) -> dict[str, Any]:
    manifest = adopted.draft.manifest
    return {
        "name": entry.name,
        "folder": entry.directory,
        "family": manifest["model"]["family"],
        "definition": manifest["source"]["path"],
        "generics": manifest["generics"],
        "repo": manifest["weights"]["repo"],
        "revision": manifest["weights"]["revision"],
        "notes": notes,
    }
