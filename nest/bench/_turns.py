"""Contenders in turn: each a process of its own, which has loaded and warmed up and waits while the others work.

Rounds go in turn, so that a change of the machine's speed meets all of them. A contender whose ids differ from the
first's has no speed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any

__all__ = ["Job", "Row", "measure", "serve"]

Job = Callable[[], Sequence[int]]
"""The whole work once; gives the ids that came of it."""


@dataclass
class Row:
    """One contender: milliseconds of the whole job, peak MiB of its process, and what its time is of each peer's.

    `busy_ms` is the least that all its threads together were busy: what others do on the machine disturbs it least, but
    a pool that waits by spinning counts as busy, so that it is fair among contenders with one thread. Ratios are
    medians over rounds of this round's time by the peer's in the same round.
    """

    contender: str
    median_ms: float | None = None
    low_ms: float | None = None
    busy_ms: float | None = None
    peak_mib: float | None = None
    of: dict[str, float] = field(default_factory=dict)
    note: str = ""


class _Worker:
    """A contender's process."""

    def __init__(self, arguments: Sequence[str], threads: int) -> None:
        # Each library's own pool, at the same size; none may count more cores than it is lent.
        pools = {f"{n}_NUM_THREADS": str(threads) for n in ("OMP", "MKL", "OPENBLAS")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **pools},
        )  # fmt: skip

    def line(self) -> str:
        return self.process.stdout.readline().strip() if self.process.stdout else ""

    def once(self) -> dict[str, Any]:
        if self.process.stdin:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        made: dict[str, Any] = json.loads(self.line())
        return made

    def end(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


def measure(
    contenders: Mapping[str, Sequence[str]], rounds: int, threads: int, peers: Sequence[str]
) -> list[Row]:
    """One row for each contender, in order; one that cannot start says so and has no numbers.

    Args:
        contenders: by name, the module and arguments that serve its job: see `serve`.
        peers: those whose time others' are divided by.
    """
    workers: dict[str, _Worker] = {}
    rows = {name: Row(name) for name in contenders}
    try:
        for name, arguments in contenders.items():
            worker = _Worker(arguments, threads)
            if worker.line() == "ready":
                workers[name] = worker
            else:
                worker.end()
                rows[name].note = "did not start"
        turns = [{name: worker.once() for name, worker in workers.items()} for _ in range(rounds)]
    finally:
        for worker in workers.values():
            worker.end()
    if turns and workers:
        _fill(rows, turns, peers)
    return list(rows.values())


def _fill(rows: dict[str, Row], turns: list[dict[str, Any]], peers: Sequence[str]) -> None:
    expected = next(iter(turns[0].values()))["ids"]
    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    for name in turns[0]:
        made, row = [turn[name] for turn in turns], rows[name]
        if any(m["ids"] != expected for m in made):
            row.note = "other ids"
            continue
        row.median_ms = statistics.median(m["ms"] for m in made)
        row.low_ms = min(m["ms"] for m in made)
        row.busy_ms = min(m["busy"] for m in made)
        row.peak_mib = made[-1]["peak"] / unit
        for peer in peers:
            if peer in turns[0]:
                row.of[peer] = statistics.median(turn[name]["ms"] / turn[peer]["ms"] for turn in turns)


def serve(make: Callable[[], Job], threads: int) -> None:
    """Do the job once for each line of standard input; a line of JSON each: milliseconds of the clock and of
    the processor, ids and peak memory."""
    import resource

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    job = make()
    job()
    print("ready", flush=True)
    for _ in sys.stdin:
        start, busy = perf_counter(), process_time()
        ids = job()
        taken, busy = 1e3 * (perf_counter() - start), 1e3 * (process_time() - busy)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"ms": taken, "busy": busy, "ids": list(ids), "peak": peak}), flush=True)
