"""What was measured of an entry, in the few words of the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nest.catalog.facts import Facts
from nest.catalog.metrics import METRICS, busy, hardware, headline, work_words
from nest.registry.bench import BenchRun, Method

__all__ = ["Speed", "Summary", "summary"]

_WINDOW_MS = 30_000
"""What one call of a transcriber hears."""


@dataclass(frozen=True)
class Speed:
    """One measured speed: a number to sort by (more is faster), how it is said, and on what it was measured."""

    value: float
    text: str
    where: str


@dataclass(frozen=True)
class Summary:
    """Backends by whether all of their measured rows were within the tolerances; absent where none was measured."""

    backends: Mapping[str, bool] = field(default_factory=dict)
    cpu: Speed | None = None
    gpu: Speed | None = None


def summary(facts: Facts) -> Summary:
    """The summary of an entry's measured files; what is of another definition counts as not measured."""
    return Summary(_backends(facts), _fastest(facts, "cpu"), _fastest(facts, "cuda"))


def _backends(facts: Facts) -> dict[str, bool]:
    found: dict[str, bool] = {}
    rows = (row for run, current in facts.parity if current for row in run.rows)
    for row in rows:
        if row.status != "left out" and row.backend not in ("oracle", "transformers"):
            found[row.backend] = found.get(row.backend, True) and row.status == "ok"
    return found


def _fastest(facts: Facts, device: str) -> Speed | None:
    """The fastest method of nest's that did not fail, of the runs on a device that no other work made longer."""
    metric = headline(facts.task)
    speeds = [_speed(metric, run, method) for run, method in _methods(facts, device, metric) if metric]
    return max(speeds, key=lambda speed: speed.value, default=None)


def _methods(facts: Facts, device: str, metric: str | None) -> Iterator[tuple[BenchRun, Method]]:
    for run, current in facts.bench:
        if current and run.workload.get("device") == device and not busy(run.environment, run.workload):
            for method in run.methods:
                if method.kind == "nest" and method.error is None and method.metrics.get(metric or "", 0) > 0:
                    yield run, method


def _speed(metric: str, run: BenchRun, method: Method) -> Speed:
    value = method.metrics[metric]
    where = f"{hardware(run.environment, run.workload)}; {method.method}; {work_words(run.workload)}; {run.date[:10]}"
    if metric == "transcribe_ms":
        return Speed(_WINDOW_MS / value, f"{value / 1e3:.2g} s for 30 s", where)
    return Speed(value, METRICS[metric].text(value), where)
