"""`nest bench`: how fast entries are, on every backend and plan beside the reference library."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from nest.cli._check import chosen
from nest.cli._format import json_text
from nest.errors import NestError
from nest.registry.bench import BenchRun


def main(args: argparse.Namespace) -> int:
    runs: dict[str, list[dict[str, Any]]] = {}
    failed = False
    names = chosen(args)
    for name in names:
        for dtype in args.dtype or ["f32"]:
            try:
                run = _measured(name, dtype, args)
            except NestError as error:
                if len(names) == 1:
                    raise
                # One entry among many whose weights cannot be had is named, and the others are still measured.
                sys.stderr.write(f"nest: error: {name}: {error}\n")
                failed = True
                continue
            runs.setdefault(name, []).append(run.model_dump())
            failed = failed or any(method.error for method in run.methods)
            if not args.json:
                print(_table(name, run), flush=True)
    if args.json:
        print(json_text(runs))
    return int(failed)


def _measured(name: str, dtype: str, args: argparse.Namespace) -> BenchRun:
    from nest.backends.installed import BACKENDS
    from nest.bench._work import Work
    from nest.bench.entries import bench, library_known, methods_of, save, weights_of
    from nest.loading import program_of
    from nest.registry import find

    backends = args.backend or [
        n
        for n in BACKENDS
        if n != "reference" and BACKENDS[n].installed and not (n == "onnx" and args.device == "cuda")
    ]
    library = not args.no_library and library_known(name)
    graphs = args.device == "cuda" and program_of(find(name)).root.has_state
    methods = methods_of(backends, args.plan or ("exact", "fast"), graphs=graphs, library=library)
    work = Work(
        name,
        device=args.device,
        dtype=dtype,
        weights=weights_of(name, args.weights, offline=args.offline),
        threads=args.threads,
        batch=args.batch,
    )
    run = bench(name, methods, work, rounds=args.rounds, told=_told)
    if args.save:
        sys.stderr.write(f"nest: {save(run, find(name))}\n")
    return run


def _told(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


def _table(name: str, run: BenchRun) -> str:
    """The run as Markdown; what failed has its reason in place of figures."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    columns = list(dict.fromkeys(key for method in run.methods for key in method.metrics))
    lines = [
        f"**{name}**, " + ", ".join(f"{key} {value}" for key, value in run.workload.items()),
        "",
        "| " + " | ".join(["method", *columns, "max diff", ""]) + " |",
        "|---" * (len(columns) + 3) + "|",
    ]
    for method in run.methods:
        figures = [f"{method.metrics[key]:.4g}" if key in method.metrics else "" for key in columns]
        distance = "" if method.max_abs_diff is None else f"{method.max_abs_diff:.1e}"
        verdict = f"**failed**: {method.error}" if method.error else ""
        lines.append("| " + " | ".join([method.method, *figures, distance, verdict]) + " |")
    return "\n".join(lines)
