"""`nest bench`: an entry on every backend and plan beside the reference library, in one run, in turn.

Each contender is loaded and warmed up, and its results are compared with the reference's; one whose results are wrong
has an error and no speed. Then rounds go in turn, so that a change of the machine's speed meets all of them; figures
are medians.
"""

from __future__ import annotations

import datetime
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nest.bench._compare import fault
from nest.bench._contenders import LIBRARY, Method
from nest.bench._devices import check_frameworks, elsewhere, library_installed
from nest.bench._lane import Lane
from nest.bench._work import Kind, Work, figures, job_of
from nest.errors import FetchError, MissingDependencyError, NestError
from nest.ir.inventory import parameters
from nest.ir.parammap import TensorSpec
from nest.ir.printer import digest
from nest.ir.program import Program
from nest.loading import program_of
from nest.registry import Entry, find
from nest.registry.bench import BenchRun, merged, read_bench, write_bench
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
    told: Told = lambda _: None,
) -> BenchRun:
    """Measure one entry.

    Args:
        name: what `nest.registry.find` takes.
        methods: the contenders; the reference library, if there is one, is the reference, else the first.
        work: what is done; its `entry` is `name`'s.
        lane_of: the process of a contender; one of its own for each if None.
        told: called with a line on what goes on.

    Raises:
        MissingDependencyError: the framework of a contender is not installed, or cannot be imported.
        NestError: the entry, or its weights.
    """
    if lane_of is None:
        check_frameworks(dict.fromkeys(method.backend for method in methods))
    entry = find(name)
    program = program_of(entry)
    work = replace(work, entry=entry.reference)
    kind = job_of(entry, program, work).kind
    work = replace(work, new_tokens=_NEW_TOKENS.get(kind, work.new_tokens))
    ordered = sorted(methods, key=lambda method: method.backend != LIBRARY)
    with _parameters(program, work) as weights, _lanes(ordered, work, lane_of) as lanes:
        run = _Run(entry, work, kind, weights, lanes, told)
        run.load(ordered)
        run.turns(rounds)
        rows = [run.row(method) for method in ordered]
    return BenchRun.model_validate(
        {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "environment": _environment(work),
            "workload": {**work.facts(kind), "rounds": rounds, **_load_average(work)},
            "methods": rows,
            "reference": run.reference,
            "program": digest(program),
        }
    )


class _Run:
    """The state of one run: what each contender said of itself, and the times of its turns."""

    def __init__(
        self,
        entry: Entry,
        work: Work,
        kind: Kind,
        weights: Path | None,
        lanes: Mapping[str, Lane],
        told: Told,
    ) -> None:
        self.entry, self.work, self.kind, self.weights = entry, work, kind, weights
        self.lanes, self.told = lanes, told
        self.reference: str | None = None
        self.said: dict[str, dict[str, Any]] = {}
        self.results: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
        self.taken: dict[str, list[dict[str, float]]] = {}
        self.differences: dict[str, float] = {}

    def load(self, methods: Sequence[Method]) -> None:
        """Load all, and compare what they give: lanes beside each other on a GPU, one after another on a processor."""
        lanes: dict[int, list[Method]] = {}
        for method in methods:
            lanes.setdefault(id(self.lanes[method.key]), []).append(method)
        at_once = len(lanes) if self.work.device == "cuda" else 1
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as pool:
            waiting = [pool.submit(self._load, members, Path(folder)) for members in lanes.values()]
            for loaded in waiting:
                loaded.result()
            self.said = {method.key: self.said[method.key] for method in methods}
            for key in [key for key, said in self.said.items() if "error" not in said]:
                with np.load(Path(folder, f"{key}.npz")) as stored:
                    self.results[key] = dict(stored)
                self._compare(key)

    def _load(self, methods: Sequence[Method], folder: Path) -> None:
        """Load the contenders of one lane."""
        for method in methods:
            self.told(f"{self.entry.name}: {method.title} loads")
            said = self.lanes[method.key].ask(
                "load",
                key=method.key,
                method=asdict(method),
                work=asdict(self.work),
                weights=None if self.weights is None else str(self.weights),
                into=str(folder / f"{method.key}.npz"),
            )
            if "missing" in said:
                raise MissingDependencyError(str(said["error"]), name=said["missing"])
            self.said[method.key] = said

    def _compare(self, key: str) -> None:
        if self.reference is None and all(np.isfinite(array).all() for array in self.results[key].values()):
            self.reference = key  # what is right here; `nest verify` says how right
        if self.reference is None:
            self.said[key] = {"error": "NaN or infinite"}
            return
        found = fault(self.entry, self.work, self.results[key], self.results[self.reference])
        self.differences[key] = found.largest
        if found.text is not None:
            self.said[key] = {"error": found.text}

    def turns(self, rounds: int) -> None:
        """Every contender in turn, so many times."""
        running = [key for key, said in self.said.items() if "error" not in said]
        for number in range(rounds):
            for key in running if number % 2 == 0 else reversed(running):
                self.told(f"{self.entry.name}: round {number + 1} of {rounds}, {key}")
                made = self.lanes[key].ask("run", key=key)
                if "error" in made:
                    self.said[key] = made
                else:
                    self.taken.setdefault(key, []).append(made["ms"])
                    self.said[key]["peak_mib"] = made["peak_mib"]
            running = [key for key in running if "error" not in self.said[key]]
        for key in self.said:
            self.lanes[key].ask("drop", key=key)

    def row(self, method: Method) -> dict[str, Any]:
        """A contender's method in the form of the card."""
        said = self.said[method.key]
        error = said.get("error")
        row: dict[str, Any] = {
            "method": method.title,
            "kind": "reference" if method.backend == LIBRARY else "nest",
            "metrics": {} if error else self._metrics(method.key),
            "max_abs_diff": _three(self.differences.get(method.key)),
            "notes": _notes(method, self.kind),
            "error": error,
            "key": method.key,
        }
        return row

    def _metrics(self, key: str) -> dict[str, float]:
        turns = self.taken[key]
        medians = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        found = figures(self.kind, self.work, medians)
        shared = sum(lane is self.lanes[key] for lane in self.lanes.values()) > 1
        about = ("load_s", "first_s", *(() if shared else ("peak_mib",)), "peak_vram_mib")
        found |= {name: self.said[key][name] for name in about if self.said[key].get(name) is not None}
        return {name: float(f"{value:.4g}") for name, value in found.items()}


def methods_of(
    backends: Sequence[str], plans: Sequence[str], *, graphs: bool, library: bool = True
) -> list[Method]:
    """The contenders: the library, then each backend at each plan; torch with CUDA graphs where they are asked for."""
    found = [Method(LIBRARY)] if library else []
    for backend in backends:
        for plan in plans:
            found.append(Method(backend, plan, graphs=graphs and backend == "torch"))
    return found


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


def save(run: BenchRun, entry: Entry) -> Path | None:
    """Keep a run in the entry's `bench.json`: see `nest.registry.bench.merged` for what it replaces.

    Returns:
        The file; None where every method failed, of which nothing is kept.
    """
    if run.failed:
        return None
    return write_bench(entry.directory, merged(read_bench(entry.directory, entry.name), run))


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
    methods: Sequence[Method], work: Work, lane_of: Callable[[Method], Lane] | None
) -> Iterator[dict[str, Lane]]:
    own = {} if lane_of else {m.key: Lane(work.threads, pinned=work.device == "cpu") for m in methods}
    try:
        yield own or {method.key: lane_of(method) for method in methods if lane_of}
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


def _notes(method: Method, kind: Kind) -> str:
    if method.backend == LIBRARY and kind in ("speech", "decoder"):
        return "a token at a time over the library's growing caches, without its generate()"
    return ""


def _three(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.3g}")


def library_known(name: str) -> bool:
    """Whether the reference library computes this entry's family."""
    return knows(find(name))
