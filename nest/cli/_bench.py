"""`nest bench`: how fast entries are, on every backend and plan beside the reference library and its peers."""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

from nest.cli._bench_options import COMPILED
from nest.cli._bench_table import bench_table
from nest.cli._check import chosen
from nest.cli._format import json_text
from nest.cli._targets import check_targets
from nest.errors import CallError, NestError
from nest.registry import find
from nest.registry.bench import BenchRun, check_bench

__all__ = ["main"]

USAGE = 2


def main(args: argparse.Namespace) -> int:
    if args.all and args.names:
        sys.stderr.write("nest: error: --all and NAME exclude each other. See: nest bench --help\n")
        return USAGE
    runs: dict[str, list[dict[str, Any]]] = {}
    failed = False
    names = chosen(args)
    if args.out and len(names) > 1:
        sys.stderr.write("nest: error: --out FILE keeps the runs of one entry. See: nest bench --help\n")
        return USAGE
    check_targets(names, args, check_bench)
    if args.out:
        check_bench(args.out, names[0])
    contenders = _contenders(args)
    for name in names:
        for dtype, batch in product(args.dtype or ["f32"], args.batch):
            try:
                run = _measured(name, dtype, batch, contenders, args)
            except NestError as error:
                if len(names) == 1:
                    raise
                # One entry among many whose weights cannot be had is named, and the others are still measured.
                sys.stderr.write(f"nest: error: {name}: {error}\n")
                failed = True
                continue
            runs.setdefault(name, []).append(run.model_dump())
            # That a peer fails is no fault of the entry.
            failed = failed or any(method.error for method in run.methods if method.kind != "peer")
            if not args.json:
                print(bench_table(name, run), flush=True)
    if args.json:
        print(json_text(runs))
    return int(failed)


def _contenders(args: argparse.Namespace) -> list[str]:
    """The backends, and the reference library, that can be measured here; each that was named, or an error.

    Raises:
        MissingDependencyError: the framework of a backend that was named is not installed.
        CallError: it computes on another device than the one named, or none does on that one.
    """
    from nest.backends.installed import BACKENDS
    from nest.bench._environments import check_environments
    from nest.bench.entries import LIBRARY, check_frameworks, elsewhere, library_installed

    check_frameworks(args.backend)
    check_environments(args.peers_from)
    here = [name for name in BACKENDS if name != "reference" and BACKENDS[name].installed]
    library = [LIBRARY] if not args.no_library and library_installed() else []
    if not library and not args.no_library:
        sys.stderr.write("nest: the reference library is left out: transformers or torch is not installed.\n")
    wanted = args.backend or here
    wrong = elsewhere([*wanted, *library], args.device)
    backends = [name for name in wanted if name not in wrong]
    refused = [wrong[name] for name in wanted if name in wrong]
    if refused and (args.backend or not backends):
        raise CallError(" ".join(refused))
    for why in wrong.values():
        sys.stderr.write(f"nest: left out: {why}\n")
    return [*backends, *(name for name in library if name not in wrong)]


def _measured(name: str, dtype: str, batch: int, contenders: list[str], args: argparse.Namespace) -> BenchRun:
    from nest.bench._work import Work
    from nest.bench.entries import LIBRARY, bench, library_known, methods_of, save, weights_of
    from nest.loading import program_of

    library = LIBRARY in contenders and library_known(name)
    graphs = args.device == "cuda" and program_of(find(name)).root.has_state
    backends = [one for one in contenders if one != LIBRARY]
    methods = methods_of(
        backends,
        args.plan or ("exact", "fast"),
        graphs=graphs,
        library=library,
        compiled=library and COMPILED in args.peers,
        peers=[peer for peer in args.peers if peer != COMPILED],
    )
    wanted = args.only.lower().split("|")
    methods = [one for one in methods if any(text in one.title.lower() or text in one.key for text in wanted)]
    if not any(not one.peer for one in methods):
        raise CallError(
            f"--only '{args.only}' leaves neither nest nor the reference library, with which peers are compared."
        )
    work = Work(
        name,
        device=args.device,
        dtype=dtype,
        weights=weights_of(name, args.weights, offline=args.offline),
        threads=args.threads,
        batch=batch,
        texts=args.texts,
    )
    run = bench(
        name, methods, work, rounds=args.rounds, environments=args.peers_from,
        peer_weights=dict(args.peer_weights), beside=args.beside, told=_told,
    )  # fmt: skip
    if args.save or args.out:
        file = save(run, find(name), args.out)
        sys.stderr.write(f"nest: {file or f'{name}: every method failed, so nothing is saved'}\n")
    return run


def _told(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
