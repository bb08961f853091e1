"""Every entry that fits on one GPU within a time, with random weights; what was measured goes into one file.

    python -m nest.bench.sweep --out DIR [--seconds 480] [--device cuda] [--only NAME ...]
    python -m nest.bench.sweep --import DIR/bench.json

Three processes stay for all entries, since starting a framework takes longer than most measurements: the reference
library with torch, jax, and nnx. Entries come by size, first all in 16 bits, then in f32; one that would begin too
late is skipped, and said to be. The file is written anew after each entry, so that a run that is broken off keeps what
was done. The second form puts a file's runs into the `bench.json` of each entry of the zoo, beside those of other
machines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

from nest.bench._contenders import LIBRARY, Method
from nest.bench._lane import Lane
from nest.bench._work import Work
from nest.bench.entries import bench, library_known, save
from nest.errors import NestError
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.registry import find, names
from nest.registry._records import replace_file
from nest.registry.bench import BenchRun

__all__ = ["main"]

_LAST = 30.0
"""Seconds that must be left for an entry to begin."""

Case = tuple[str, str]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or import."""
    given = _parser().parse_args(argv)
    if given.import_:
        return _import(given.import_)
    return _sweep(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.sweep")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder that bench.json is written to")
    parser.add_argument("--seconds", type=float, default=480.0, help="when no entry begins any more")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these entries")
    parser.add_argument(
        "--most", type=float, default=2e9, help="parameters of the largest entry that is measured"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--import", dest="import_", type=Path, metavar="FILE", help="put a file's runs into the zoo"
    )
    return parser


def _sweep(given: argparse.Namespace) -> int:
    begin, done = time.monotonic(), _Done(given.out / "bench.json")
    lanes = {name: Lane(1, pinned=False) for name in ("torch", "jax", "nnx")}
    try:
        for name, dtype in _cases(given.only or names(), given.most, done):
            left = given.seconds - (time.monotonic() - begin)
            if left < max(_LAST, 1.2 * done.longest):
                done.skip(name, dtype, f"{left:.0f} s were left")
                continue
            work = Work(name, device=given.device, dtype=dtype, threads=1, batch=_batch(name))
            methods = _methods(name, given.device)
            started = time.monotonic()
            try:
                run = bench(name, methods, work, rounds=given.rounds, lane_of=lambda m: lanes[_lane(m)])
            except (NestError, RuntimeError, MemoryError) as error:
                done.skip(name, dtype, f"{type(error).__name__}: {error}")
                continue
            done.add(name, run, time.monotonic() - started)
    finally:
        for lane in lanes.values():
            lane.end()
    return 0


class _Done:
    """The file, and how long the longest entry of the last few took."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.entries: dict[str, list[Any]] = {}
        self.skipped: dict[str, str] = {}
        self._seconds: list[float] = []
        file.parent.mkdir(parents=True, exist_ok=True)

    @property
    def longest(self) -> float:
        return max(self._seconds[-3:], default=0.0)

    def add(self, name: str, run: BenchRun, seconds: float) -> None:
        self._seconds.append(seconds)
        self.entries.setdefault(name, []).append(run.model_dump(exclude_unset=True))
        failed = [f"{method.method}: {method.error}" for method in run.methods if method.error]
        print(f"{name} {run.workload['dtype']}: {seconds:.0f} s {'; '.join(failed)}", flush=True)
        self._write()

    def skip(self, name: str, dtype: str, why: str) -> None:
        self.skipped[f"{name} {dtype}"] = why
        print(f"{name} {dtype}: skipped, {why}", flush=True)
        self._write()

    def _write(self) -> None:
        facts = {"entries": self.entries, "skipped": self.skipped}
        replace_file(self.file, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _cases(chosen: Sequence[str], most: float, done: _Done) -> Iterator[Case]:
    sized = sorted((_parameters(name), name) for name in chosen)
    for size, name in sized:
        if size > most:
            done.skip(name, "", f"{size / 1e9:.1f}e9 parameters, and at most {most / 1e9:.1f}e9 are measured")
    fitting = [name for size, name in sized if size <= most]
    yield from ((name, _half(name)) for name in fitting)
    yield from ((name, "f32") for name in fitting)


def _parameters(name: str) -> int:
    return sum(prod(spec.shape) for spec in parameters(program_of(name)).values())


def _task(name: str) -> str:
    task = find(name).manifest.task
    return task.kind if task else ""


def _half(name: str) -> str:
    """The 16 bits that people run a model in."""
    return "bf16" if _task(name) == "text-generation" else "f16"


def _batch(name: str) -> int:
    """One user speaks or writes; vectors and pictures come in batches."""
    return 1 if _task(name) in ("transcription", "text-generation") else 32


def _methods(name: str, device: str) -> list[Method]:
    graphs = device == "cuda" and program_of(name).root.has_state
    found = [Method(LIBRARY)] if library_known(name) else []
    found += [Method("torch", plan, graphs=graphs) for plan in ("exact", "fast")]
    return [*found, Method("jax"), Method("jax", "fast"), Method("nnx")]


def _lane(method: Method) -> str:
    return "torch" if method.backend == LIBRARY else method.backend


def _import(file: Path) -> int:
    """Put every run into the zoo; what failed is told, so that somebody looks before it is committed."""
    for name, runs in json.loads(file.read_text(encoding="utf-8"))["entries"].items():
        for facts in runs:
            run = BenchRun.model_validate(facts)
            save(run, find(name))
            failed = [f"{method.method}: {method.error}" for method in run.methods if method.error]
            print(f"{name}, {run.workload.get('dtype')}: {'; '.join(failed) or 'no failure'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
