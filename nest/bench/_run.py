"""One run: contenders load, what they give is compared, and then they take turns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nest.bench._compare import fault
from nest.bench._contenders import COMPILED, LIBRARY, Method
from nest.bench._lane import Lane
from nest.bench._task import Task
from nest.bench._work import Kind, Work, figures
from nest.bench.peers import PEERS
from nest.errors import MissingDependencyError
from nest.registry import Entry

__all__ = ["Run"]

_WHOLE = ("task", "transcribe", "generate", "embed")
"""The pieces that are a whole job, the one that most begin with first."""


class Run:
    """The state of one run: what each contender said of itself, and the times of its turns.

    Args:
        weights: a file of parameters by definition path; the pinned ones if None.
        task: the whole job, where there is one.
        named: weights that a peer cannot read from the entry's files, by its name.
        told: called with a line on what goes on.
    """

    def __init__(
        self,
        entry: Entry,
        work: Work,
        kind: Kind,
        weights: Path | None,
        lanes: Mapping[str, Lane],
        told: Callable[[str], None],
        task: Task | None = None,
        named: Mapping[str, str] | None = None,
    ) -> None:
        self.entry, self.work, self.kind, self.weights = entry, work, kind, weights
        self.lanes, self.told, self.task, self.named = lanes, told, task, dict(named or {})
        self.reference: str | None = None
        self.said: dict[str, dict[str, Any]] = {}
        self.results: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
        self.taken: dict[str, dict[int, dict[str, float]]] = {}
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
            for key in self._running():
                with np.load(Path(folder, f"{key}.npz")) as stored:
                    self.results[key] = dict(stored)
                self._compare(key)

    def _load(self, methods: Sequence[Method], folder: Path) -> None:
        """Load the contenders of one lane."""
        for method in methods:
            self.told(f"{self.entry.name}: {method.title} loads")
            said = self._asked(method, folder / f"{method.key}.npz")
            if "missing" in said:
                raise MissingDependencyError(str(said["error"]), name=said["missing"])
            self.said[method.key] = said

    def _asked(self, method: Method, into: Path) -> dict[str, Any]:
        lane = self.lanes[method.key]
        if method.peer:
            if self.task is None:
                return {"absent": "not measured: it needs the entry's real weights and files"}
            given = {
                "task": str(self.task.file),
                "facts": self.task.facts,
                "folder": str(self.task.folder),
                "weights": self.named.get(method.backend, ""),
                "threads": self.work.threads,
                "device": self.work.device,
                "batch": self.work.batch,
            }
            return lane.ask("load_peer", key=method.key, name=method.backend, given=given, into=str(into))
        return lane.ask(
            "load",
            key=method.key,
            method=asdict(method),
            work=asdict(self.work),
            weights=None if self.weights is None else str(self.weights),
            task=None if self.task is None else str(self.task.file),
            into=str(into),
        )

    def _running(self) -> list[str]:
        return [key for key, said in self.said.items() if not {"error", "absent"} & said.keys()]

    def _compare(self, key: str) -> None:
        if self.reference is None and self._finite(key):
            self.reference = key  # what is right here; `nest verify` says how right
        if self.reference is None:
            self.said[key] = {"error": "NaN or infinite"}
            return
        # Another that does the whole job is right where the reference does not.
        right = self.results[self.reference]
        for other in self._running():
            if other != key and other in self.results:
                right = {**self.results[other], **right}
        if not self.results[key].keys() & right.keys() and key != self.reference:
            self.said[key] = {"absent": "not measured: nothing is there to compare its results with"}
            return
        found = fault(self.entry, self.work, self.results[key], right)
        if found.largest is not None:
            self.differences[key] = found.largest
        if found.text is not None:
            self.said[key] = {"error": found.text}

    def _finite(self, key: str) -> bool:
        arrays = self.results[key].values()
        return all(np.isfinite(array).all() for array in arrays if array.dtype.kind != "U")

    def turns(self, rounds: int) -> None:
        """Every contender in turn, so many times, in an order that is turned round after each."""
        running = self._running()
        for number in range(rounds):
            for key in running if number % 2 == 0 else reversed(running):
                self.told(f"{self.entry.name}: round {number + 1} of {rounds}, {key}")
                made = self.lanes[key].ask("run", key=key)
                if "error" in made:
                    self.said[key] = made
                else:
                    self.taken.setdefault(key, {})[number] = made["ms"]
                    self.said[key]["peak_mib"] = made["peak_mib"]
            running = [key for key in running if "error" not in self.said[key]]
        for key in self.said:
            self.lanes[key].ask("drop", key=key)

    def beside(self, named: str | None) -> str | None:
        """The key of the contender by whose time the others' are divided: that with this name, else the reference."""
        keys = self._running()
        return next((key for key in keys if named and named in key), self.reference)

    def versions(self) -> dict[str, str]:
        """Of the peers that were measured."""
        found: dict[str, str] = {}
        for said in self.said.values():
            found |= said.get("versions", {})
        return found

    def row(self, method: Method, beside: str | None) -> dict[str, Any]:
        """A contender's method in the form of the card."""
        said = self.said[method.key]
        fine = not {"error", "absent"} & said.keys()
        row: dict[str, Any] = {
            "method": method.title,
            "kind": _kind(method),
            "metrics": self._metrics(method.key) if fine else {},
            "max_abs_diff": _three(self.differences.get(method.key)),
            "notes": _notes(method, self.kind, said.get("versions", {})),
            "error": said.get("error"),
            "key": method.key,
        }
        if "absent" in said:
            row["absent"] = said["absent"]
        if fine:
            row["spread"] = self._spread(method.key)
            row["ratio"] = self._ratio(method.key, beside)
        return row

    def _metrics(self, key: str) -> dict[str, float]:
        turns = list(self.taken[key].values())
        medians = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        found = figures(self.kind, self.work, medians)
        shared = sum(lane is self.lanes[key] for lane in self.lanes.values()) > 1
        about = ("load_s", "first_s", *(() if shared else ("peak_mib",)), "peak_vram_mib")
        found |= {name: self.said[key][name] for name in about if self.said[key].get(name) is not None}
        return {name: _four(value) for name, value in found.items()}

    def _spread(self, key: str) -> dict[str, list[float]]:
        turns = list(self.taken[key].values())
        return {
            f"{name}_ms": [_four(least(t[name] for t in turns)) for least in (min, max)] for name in turns[0]
        }

    def _ratio(self, key: str, beside: str | None) -> float | None:
        """The median over rounds of the whole job's time by the other's in the same round."""
        mine, other = self.taken[key], self.taken.get(beside or "", {})
        both = [number for number in mine if number in other]
        if not both:
            return None
        piece = next((p for p in _WHOLE if p in mine[both[0]] and p in other[both[0]]), None)
        if piece is None:
            return None
        return _four(statistics.median(mine[number][piece] / other[number][piece] for number in both))


def _kind(method: Method) -> str:
    if method.backend == LIBRARY:
        return "peer" if method.plan == COMPILED else "reference"
    return "peer" if method.peer else "nest"


def _notes(method: Method, kind: Kind, versions: Mapping[str, str]) -> str:
    if method.peer:
        return "; ".join([PEERS[method.backend].settings, *(f"{name} {v}" for name, v in versions.items())])
    if method.backend == LIBRARY and method.plan == COMPILED:
        return "torch.compile of the default mode, fixed shapes" + (
            "; a token at a time over caches of a fixed size" if kind in ("speech", "decoder") else ""
        )
    if method.backend == LIBRARY and kind in ("speech", "decoder"):
        return "a token at a time over the library's growing caches, and the whole job by its generate()"
    return ""


def _four(value: float) -> float:
    return float(f"{value:.4g}")


def _three(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.3g}")
