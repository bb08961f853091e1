"""`nest prepare`: everything that a first request would wait for, done before: when an image is built, say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from nest._env import check_environment
from nest._optional import need
from nest.cli._fetching import announce_fetch
from nest.cli._format import columns, file_size, json_text
from nest.cli.runs._items import Item
from nest.errors import CallError, InputError, ManifestError
from nest.loading import chosen_backend
from nest.registry import find
from nest.tasks import pipeline
from nest.tasks._kinds import kind_of
from nest.weights.cache import cache_root

__all__ = ["Prepared", "main"]

USAGE = 2

REMAINS = {
    "onnx": "each process makes its own sessions of ONNX Runtime, in some ten milliseconds each",
    "torch": "each process imports torch and, on a GPU, records its CUDA graphs at the first call of a shape",
    "jax": "each process traces an entry at its first call of a shape; what is compiled is found",
    "nnx": "each process traces an entry at its first call of a shape; what is compiled is found",
}
"""What no cache spares a process, by backend."""


@dataclass(frozen=True)
class Prepared:
    """What was done, in seconds, and what nest's cache holds afterwards, in bytes by folder."""

    model: str
    backend: str
    plan: str
    fetch_s: float
    load_s: float
    first_s: float
    second_s: float
    kept: dict[str, int]
    folder: str
    remains: str


def main(args: argparse.Namespace) -> int:
    check_environment()
    entry = find(args.name)
    try:
        kind = kind_of(entry, args.kind)
        how = import_module(f"nest.cli.runs.{kind.module}")
        items: list[Item] = how.prepare(entry, args)
    except CallError as error:
        sys.stderr.write(f"nest: error: {error} See: nest prepare --help\n")
        return USAGE
    if not items:
        raise InputError(
            f"'{entry.name}' has no sample for {kind.name} to prepare by: use nest pull instead."
        )
    if not (entry.trusted or args.trust_source):
        raise ManifestError(entry.refusal)  # before anything is fetched for it
    backend = args.backend or chosen_backend(extras=kind.extras)
    fetched = _timed("fetch the files", lambda: None if args.offline else announce_fetch(entry))[0]
    options: dict[str, Any] = {"task": args.kind, "backend": backend, "plan": args.plan}
    options |= {"local_files_only": args.offline, "trust_source": args.trust_source or None}
    with _everything_kept(backend):
        loaded, task = _timed("load the model", lambda: pipeline(args.name, **options))
        first, second = (
            _timed(f"answer its sample, {which}", lambda: _answer(how, task, items[0], args))[0]
            for which in ("compiling what is needed", "again")
        )
    made = Prepared(
        entry.name, backend, args.plan, fetched, loaded, first, second, _kept(cache_root()), str(cache_root()),
        REMAINS.get(backend, "nothing is compiled"),
    )  # fmt: skip
    print(json_text(asdict(made)) if args.json else _table(made))
    return 0


def _everything_kept(backend: str) -> AbstractContextManager[None]:
    """Where the backend leaves what compiles quickly uncached, have it keep that too."""
    if backend not in ("jax", "nnx"):
        return nullcontext()
    need("jax", extra="jax", purpose=f"prepare a model on the {backend} backend")
    from nest.backends.jax.compile_cache import everything_kept

    return everything_kept()


def _timed(what: str, work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of some work, which is announced on a terminal, and what it gives."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{what} ...\n")
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def _answer(how: Any, task: Any, item: Item, args: argparse.Namespace) -> None:
    """One answer, to its end."""
    for _ in how.answer(task, item, args).pieces or ():
        pass


def _kept(root: Path) -> dict[str, int]:
    """How many bytes nest's cache holds, by folder; files that others write meanwhile may be missing."""
    found: dict[str, int] = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        sizes = []
        for path in folder.rglob("*") if folder.is_dir() else ():
            try:
                sizes.append(path.stat().st_size if path.is_file() else 0)
            except OSError:  # it is gone
                continue
        if sum(sizes):
            found[folder.name] = sum(sizes)
    return found


def _table(made: Prepared) -> str:
    rows = [
        ("fetch", f"{made.fetch_s:.2f} s"),
        ("load", f"{made.load_s:.2f} s"),
        ("first answer", f"{made.first_s:.2f} s"),
        ("second answer", f"{made.second_s:.2f} s"),
        *((f"kept in {name}", file_size(size)) for name, size in made.kept.items()),
    ]
    head = f"{made.model} on {made.backend}, plan {made.plan}, is prepared; nest's cache is {made.folder}"
    return f"{head}\n\n{columns(rows)}\n\nNot kept: {made.remains}."
