"""`nest cache`: what lies in the caches, whether it is intact, and how to be rid of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nest.cli._all_entries import read_entries
from nest.cli._format import columns, file_size, json_text
from nest.errors import FetchError
from nest.registry import Entry, entries, find
from nest.weights.cache import cache_root
from nest.weights.contents import (
    CachedFile,
    Leftover,
    cached_files,
    leftovers,
    remove_entry,
    superseded,
    unnamed_packages,
    verify_file,
)
from nest.weights.hub import hub_cache_root
from nest.weights.quantized import quantized_files

_PLACES = {"hub": "the Hub client's cache", "package": "made from a package"}


def main(args: argparse.Namespace) -> int:
    if args.action == "rm" and not args.names:
        sys.stderr.write("nest: error: nest cache rm takes the NAME of an entry. See: nest cache --help\n")
        return 2
    named = [find(name) for name in args.names]
    zoo = _Zoo.read(named)
    return _ACTIONS[args.action](zoo, args)


@dataclass(frozen=True)
class _Zoo:
    """The entries that a command is about, all that are known here, and what is wrong with the others."""

    chosen: list[Entry]
    known: list[Entry]
    faults: list[str]

    @classmethod
    def read(cls, named: list[Entry]) -> _Zoo:
        everything, faults = read_entries(entries)
        if not named:
            for fault in faults:
                sys.stderr.write(f"nest: {fault}\n")
        return cls(named or everything, [*everything, *named], faults)

    def unnamed(self) -> list[Leftover]:
        return unnamed_packages(self.known)

    def useless(self) -> list[Leftover]:
        """What can be deleted without loss. An entry that cannot be read may need any package's files."""
        return leftovers(self.chosen) + ([] if self.faults else superseded(self.chosen, self.known))


def _ls(zoo: _Zoo, args: argparse.Namespace) -> int:
    files = [file for entry in zoo.chosen for file in cached_files(entry)]
    everything = _Zoo(zoo.known, zoo.known, zoo.faults)
    useless, unnamed = everything.useless(), everything.unnamed()
    quantized = [(path, path.stat().st_size) for path in quantized_files()]
    if args.json:
        facts = {
            "hub_cache": hub_cache_root(),
            "nest_cache": cache_root(),
            "files": [_facts(file) for file in files],
            "quantized": [{"path": path, "size": size} for path, size in quantized],
            "leftovers": [_leftover_facts(left) for left in useless],
            "unnamed": [_leftover_facts(left) for left in unnamed],
        }
        print(json_text(facts))
        return 0
    if files:
        rows = [(file.entry, file.spec.name, file_size(file.size), _PLACES[file.place]) for file in files]
        print(columns([("ENTRY", "FILE", "SIZE", "WHERE"), *rows]))
    print(f"{len(files)} files, {file_size(sum(file.size for file in files))}")
    print(columns([("Hub client's cache:", str(hub_cache_root())), ("nest's cache:", str(cache_root()))]))
    if quantized:
        sizes = file_size(sum(size for _, size in quantized))
        print(
            f"Quantized weights, {sizes} in {len(quantized)} files, which are made again when they are needed"
        )
    if useless:
        print(f"Of no use, {_total(useless)}: nest cache prune deletes it")
    if unnamed:
        print(
            f"Of packages that no entry here names, {_total(unnamed)}: nest cache prune --unnamed deletes it"
        )
    return 0


def _total(found: list[Leftover]) -> str:
    return file_size(sum(left.size for left in found))


def _verify(zoo: _Zoo, args: argparse.Namespace) -> int:
    results = [(file, verify_file(file, entry)) for entry in zoo.chosen for file in cached_files(entry)]
    words = {True: "intact", False: "damaged", None: "not pinned"}
    if args.json:
        print(json_text([{**_facts(file), "state": words[state]} for file, state in results]))
    elif results:
        print(columns([(file.entry, file.spec.name, words[state]) for file, state in results]))
    else:
        print("Nothing is here.")
    damaged = sorted({file.entry for file, state in results if state is False})
    if damaged:
        sys.stderr.write(
            f"nest: error: Damaged files are here. To fetch them again: nest pull {' '.join(damaged)}\n"
        )
    return 1 if damaged else 0


def _prune(zoo: _Zoo, args: argparse.Namespace) -> int:
    if zoo.faults and args.unnamed:
        raise FetchError(
            f"Which packages no entry names is not known, because not every entry can be read; nothing was "
            f"deleted. {' '.join(zoo.faults)}"
        )
    useless = zoo.useless() + (zoo.unnamed() if args.unnamed else [])
    sizes = [left.size for left in useless]
    if not args.dry_run:
        for left in useless:
            left.remove()
    if args.json:
        print(json_text([_leftover_facts(left, size) for left, size in zip(useless, sizes, strict=True)]))
        return 0
    if useless:
        rows = [
            (file_size(size), str(left.path), left.reason) for left, size in zip(useless, sizes, strict=True)
        ]
        print(columns(rows))
    print(f"{'Would delete' if args.dry_run else 'Deleted'} {file_size(sum(sizes))}")
    return 0


def _rm(zoo: _Zoo, args: argparse.Namespace) -> int:
    for entry in zoo.chosen:
        files = cached_files(entry)
        size = sum(file.size for file in files)
        paths = [file.path for file in files] if args.dry_run else remove_entry(entry)
        if args.json:
            print(json_text({"entry": entry.name, "removed": paths, "size": size}, indent=None))
            continue
        done = "would delete" if args.dry_run else "deleted"
        print(f"{entry.name}: {done} {len(paths)} files, {file_size(size)}")
    return 0


def _facts(file: CachedFile) -> dict[str, Any]:
    return {
        "entry": file.entry,
        "file": file.spec.name,
        "size": file.size,
        "path": file.path,
        "place": file.place,
        "pinned_sha256": file.spec.sha256,
    }


def _leftover_facts(left: Leftover, size: int | None = None) -> dict[str, Any]:
    return {"path": left.path, "size": left.size if size is None else size, "reason": left.reason}


_ACTIONS: Mapping[str, Callable[[_Zoo, argparse.Namespace], int]] = {
    "ls": _ls,
    "verify": _verify,
    "prune": _prune,
    "rm": _rm,
}
