"""What was measured of an entry: whether its files are right, and of the definition that stands beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from nest.checking.report import Report
from nest.errors import ManifestError
from nest.ir.printer import digest
from nest.loading import program_of
from nest.registry import Entry
from nest.registry.bench import BENCH_FILE, BenchRun, read_bench
from nest.registry.evaluations import EVAL_FILE, EvalRun, read_eval
from nest.registry.parity import PARITY_FILE, ParityRun, read_parity

__all__ = ["Current", "check_measured"]


class Current:
    """Whether measurements are of an entry as it is: of its definition, and of the weights that it pins."""

    def __init__(self, entry: Entry, *, trust_source: bool | None = None) -> None:
        self._entry = entry
        self._trust = trust_source
        self._digest: Callable[[bool], str] = cache(self._program_digest)

    def parity(self, run: ParityRun) -> bool:
        """Of a run of the matrix."""
        return run.program == self._digest(run.configuration == "tiny") and self._pinned(run)

    def bench(self, run: BenchRun) -> bool:
        """Of a benchmark; one that does not say which program it is of is taken as it is."""
        return run.program is None or run.program == self._digest(False)

    def evaluation(self, run: EvalRun) -> bool:
        """Of a word error rate."""
        weights = self._entry.manifest.weights
        return run.program == self._digest(False) and run.revision == (weights.revision if weights else None)

    def _pinned(self, run: ParityRun) -> bool:
        weights = self._entry.manifest.weights
        return run.weights == "random" or (weights is not None and run.revision == weights.revision)

    def _program_digest(self, tiny: bool) -> str:
        generics = self._entry.manifest.tiny if tiny else {}
        return digest(program_of(self._entry, trust_source=self._trust, **generics))


def check_measured(entry: Entry, report: Report, *, runs: bool, trust_source: bool) -> None:
    """Check `parity.json`, `bench.json` and `eval.json`, which an entry may have.

    Numbers of another definition are no fault, since pages show them as not measured; they are a note.

    Args:
        runs: the definition may be run, so that its digest can be compared.
    """
    current = Current(entry, trust_source=trust_source or None)
    kinds = ((PARITY_FILE, _parity_faults), (BENCH_FILE, _bench_faults), (EVAL_FILE, _eval_faults))
    for file, read in kinds:
        part = file.removesuffix(".json")
        try:
            count, stale = read(entry, current if runs else None)
        except ManifestError as error:
            report.fault(part, str(error))
            continue
        if count:
            report.ok(part, f"{count} run{'s' if count > 1 else ''}")
        for what in stale:
            report.note(part, f"{what}: of another definition or other weights; pages say 'not measured'")


def _parity_faults(entry: Entry, current: Current | None) -> tuple[int, list[str]]:
    runs = read_parity(entry.directory, entry.name)
    stale = [
        f"{run.configuration} configuration, {run.weights} weights, {run.conditions.get('date', 'no date')}"
        for run in runs
        if current and not current.parity(run)
    ]
    return len(runs), stale


def _bench_faults(entry: Entry, current: Current | None) -> tuple[int, list[str]]:
    runs = read_bench(entry.directory, entry.name)
    stale = [
        f"{run.date}, {run.workload.get('device')}" for run in runs if current and not current.bench(run)
    ]
    return len(runs), stale


def _eval_faults(entry: Entry, current: Current | None) -> tuple[int, list[str]]:
    runs = read_eval(entry.directory, entry.name)
    stale = [f"{run.date}, {run.data.name}" for run in runs if current and not current.evaluation(run)]
    return len(runs), stale
