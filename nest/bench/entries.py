"""`nest bench`: an entry on every backend and plan beside the reference library and its peers, in one run, in turn.

Each contender is loaded and warmed up, and its results are compared with the reference's; one whose results are wrong
has an error and no speed. Then rounds go in turn, so that a change of the machine's speed meets all of them; figures
are medians.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nest.bench._contenders import COMPILED, LIBRARY, Method
from nest.bench._devices import check_frameworks, elsewhere, library_installed
from nest.bench._environments import python_with
from nest.bench._lane import Lane
from nest.bench._run import Run
from nest.bench._task import Task, task_of
from nest.bench._work import Kind, Work, job_of
from nest.bench.peers import PEERS
from nest.errors import FetchError, NestError
from nest.ir.inventory import parameters
from nest.ir.parammap import TensorSpec
from nest.ir.printer import digest
from nest.ir.program import Program
from nest.loading import program_of
from nest.registry import Entry, find
from nest.registry.bench import BENCH_FILE, BenchRun, merged, read_bench, write_bench
from nest.verify.conditions import conditions
from nest.verify.library import knows
from nest.verify.weights import lively_parameters
from nest.weights import fetch
from nest.weights.writer import write_safetensors

__all__ = [
    "LIBRARY", "bench", "check_frameworks", "elsewhere", "library_installed", "library_known",
    "methods_of", "save", "weights_of",
]  # fmt: skip

_NEW_TOKENS = {"speech": 24}
Told = Callable[[str], None]


def bench(
    name: str,
    methods: Sequence[Method],
    work: Work,
    *,
    rounds: int = 5,
    lane_of: Callable[[Method], Lane] | None = None,
    environments: Sequence[Path] = (),
    peer_weights: Mapping[str, str] | None = None,
    beside: str | None = None,
    told: Told = lambda _: None,
) -> BenchRun:
    """Measure one entry.

    Args:
        name: what `nest.registry.find` takes.
        methods: the contenders; the reference library, if there is one, is the reference, else the first of nest's.
        work: what is done; its `entry` is `name`'s.
        lane_of: the process of a contender; one of its own for each if None.
        environments: virtual environments in which peers are looked for first.
        peer_weights: files of peers that cannot read the entry's, by the peer's name.
        beside: part of the key of the contender by whose time the others' are divided; the reference if None.
        told: called with a line on what goes on.

    Raises:
        MissingDependencyError: the framework of a contender is not installed, or cannot be imported.
        NestError: the entry, or its weights.
    """
    if lane_of is None:
        check_frameworks(dict.fromkeys(method.backend for method in methods if not method.peer))
    entry = find(name)
    program = program_of(entry)
    work = replace(work, entry=entry.reference)
    kind = job_of(entry, program, work).kind
    work = replace(work, new_tokens=_NEW_TOKENS.get(kind, work.new_tokens))
    ordered = sorted((m for m in methods if _takes_part(m, kind)), key=_place)
    load = _load_average(work)
    with (
        task_of(entry, kind, work) as task,
        _parameters(program, work) as weights,
        _lanes(ordered, work, lane_of, environments, task) as lanes,
    ):
        run = Run(entry, work, kind, weights, lanes, told, task, peer_weights)
        run.load(ordered)
        run.turns(rounds)
        other = run.beside(beside)
        rows = [run.row(method, other) for method in ordered]
    return BenchRun.model_validate(
        {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "environment": {**run.versions(), **_environment(work)},
            "workload": {**work.facts(kind), "rounds": rounds, **_higher(load, _load_average(work))},
            "methods": rows,
            "reference": run.reference,
            "beside": other,
            "program": digest(program),
        }
    )


def _takes_part(method: Method, kind: Kind) -> bool:
    return not method.peer or PEERS[method.backend].kind == kind


def _place(method: Method) -> tuple[bool, bool, bool]:
    """The library first, eager before compiled, and peers last: what is right comes of the first that can say it."""
    return method.peer, method.backend != LIBRARY, method.plan == COMPILED


def methods_of(
    backends: Sequence[str],
    plans: Sequence[str],
    *,
    graphs: bool,
    library: bool = True,
    compiled: bool = False,
    peers: Sequence[str] = (),
) -> list[Method]:
    """The contenders: the library, then each backend at each plan; torch with CUDA graphs where they are asked for.

    Args:
        compiled: the library under torch.compile as well.
        peers: names of `nest.bench.peers`; those that do another kind of job have no part in it.
    """
    found = [Method(LIBRARY)] if library else []
    found += [Method(LIBRARY, COMPILED)] if compiled else []
    for backend in backends:
        for plan in plans:
            found.append(Method(backend, plan, graphs=graphs and backend == "torch"))
    return [*found, *(Method(name) for name in peers)]


def weights_of(name: str, asked: str | None, *, offline: bool) -> str:
    """`real` where the pinned weights can be had, else `random`.

    Raises:
        FetchError: real ones were asked for and cannot be had.
    """
    if asked == "random":
        return "random"
    entry = find(name)
    pinned = entry.manifest.weights.files if entry.manifest.weights else []
    names = [file.name for file in pinned if file.name.endswith(".safetensors")]
    try:
        if not names:
            raise FetchError(f"'{entry.name}' pins no weights; --weights random measures without them.")
        fetch(entry, names, local_files_only=offline)
    except NestError:
        if asked == "real":
            raise
        return "random"
    return "real"


def save(run: BenchRun, entry: Entry, file: Path | None = None) -> Path | None:
    """Keep a run in the entry's `bench.json`, or in another file; `nest.registry.bench.merged` says what it replaces.

    Returns:
        The file; None where every method failed, of which nothing is kept.
    """
    if run.failed:
        return None
    file = file or entry.directory / BENCH_FILE
    return write_bench(file, merged(read_bench(file, entry.name), run))


@contextmanager
def _parameters(program: Program, work: Work) -> Iterator[Path | None]:
    """A file of random parameters by definition path, which all contenders load; None for the pinned ones."""
    if work.weights == "real":
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        drawn = lively_parameters(program, work.seed)
        specs = {path: TensorSpec(tuple(spec.shape), "f32") for path, spec in parameters(program).items()}
        file = Path(folder, "model.safetensors")
        write_safetensors(file, specs, drawn.__getitem__)
        del drawn
        yield file


@contextmanager
def _lanes(
    methods: Sequence[Method],
    work: Work,
    lane_of: Callable[[Method], Lane] | None,
    environments: Sequence[Path],
    task: Task | None,
) -> Iterator[dict[str, Lane]]:
    if lane_of:
        yield {method.key: lane_of(method) for method in methods}
        return
    own: dict[str, Lane] = {}
    try:
        for method in methods:
            python = python_with(method.backend, environments) if method.peer else None
            given = (
                {}
                if python is None or task is None
                else {"python": str(python), "path": str(task.file.parent)}
            )
            own[method.key] = Lane(work.threads, pinned=work.device == "cpu", **given)
        yield own
    finally:
        for lane in own.values():
            lane.end()


def _environment(work: Work) -> dict[str, Any]:
    found: dict[str, Any] = {name: value for name, value in conditions().items() if name != "date"}
    return {**found, **_gpu()} if work.device == "cuda" else found


def _gpu() -> dict[str, Any]:
    import torch

    return {"gpu": torch.cuda.get_device_name(), "gpus": 1} if torch.cuda.is_available() else {}


def _load_average(work: Work) -> dict[str, float]:
    on_cpu = work.device == "cpu" and hasattr(os, "getloadavg")
    return {"load_average": round(os.getloadavg()[0], 1)} if on_cpu else {}


def _higher(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: max(value, before.get(name, value)) for name, value in after.items()}


def library_known(name: str) -> bool:
    """Whether the reference library computes this entry's family."""
    return knows(find(name))
