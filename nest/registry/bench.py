"""`bench.json`: how fast an entry is, as `nest bench NAME --save` measured it.

A list of runs, each of one machine and one workload. A run of another machine is kept beside, never overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from nest.registry._fields import IsoDate, Line, Sha256
from nest.registry._records import by_lines, check_replaceable, read_list, replace_file
from nest.registry.manifest import Table

__all__ = ["BENCH_FILE", "BenchRun", "Method", "check_bench", "merged", "read_bench", "write_bench"]

BENCH_FILE = "bench.json"

_LEAST, _MOST = 1e-12, 1e15
"""No time, rate or size that was measured lies outside; what does would be drawn as nonsense."""


def _measurable(value: float) -> float:
    if value and not _LEAST <= value <= _MOST:
        raise ValueError(f"expected 0, or a figure from {_LEAST:.0e} to {_MOST:.0e}; came {value:g}")
    return value


Number = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Figure = Annotated[Number, AfterValidator(_measurable)]

Span = Annotated[list[Figure], Field(min_length=2, max_length=2)]

_MACHINE = ("machine", "processor", "cpus", "gpu", "gpus")
"""The facts of an environment that tell machines apart; versions of packages do not."""

_EFFORT = ("rounds", "warmup", "load_average")
"""The facts of a workload that say how well it was measured, not what."""


class Method(Table):
    """One way to do the work: `nest torch, fast`, `transformers (eager)`.

    `kind` is `nest`, `reference` or `peer`. `metrics` are medians by name and unit (`encode_ms`, `tokens_per_s`,
    `peak_mib`); `spread` has the least and the most of those that were measured in rounds. `ratio` is the median over
    rounds of the time of the whole job by that of the run's `beside` in the same round. `max_abs_diff` is max|Δ| to the
    reference's results. `key` is the name without spaces, for links and charts.

    A method whose results are wrong, or that could not run, has an `error` and no metrics: a wrong result has no speed.
    One that was not measured, since it is not installed or cannot do it here, has `absent`, why.
    """

    method: Line
    kind: Line
    metrics: dict[str, Figure] = Field(default_factory=dict)
    spread: dict[str, Span] = Field(default_factory=dict)
    ratio: Figure | None = None
    max_abs_diff: Number | None = None
    notes: str = ""
    error: str | None = None
    absent: str | None = None
    key: Line

    @model_validator(mode="after")
    def _failed_has_no_speed(self) -> Method:
        if self.absent is not None and (self.metrics or self.error is not None):
            raise ValueError(
                f"'{self.method}' was not measured, and has metrics or an error: take one of them away"
            )
        if self.error is not None and (self.metrics or self.spread or self.ratio is not None):
            raise ValueError(
                f"'{self.method}' has an error and metrics: a method that failed is shown without a speed; "
                f"take the metrics away, or the error if there was none"
            )
        return self


class BenchRun(Table):
    """What was measured in one run. `reference` is the key of the method whose results are right, `beside` that of the
    one by whose time the others' are divided.

    `program` is the digest of the definition that was measured.
    """

    date: IsoDate
    environment: dict[str, str | int]
    workload: dict[str, str | int | float]
    methods: list[Method] = Field(min_length=1)
    reference: str | None = None
    beside: str | None = None
    program: Sha256 | None = None

    @field_validator("methods")
    @classmethod
    def _each_once(cls, methods: list[Method]) -> list[Method]:
        for key, count in Counter(method.key for method in methods).items():
            if count > 1:
                raise ValueError(f"{count} methods have the key '{key}'; expected one: take the others away")
        return methods

    @field_validator("reference")
    @classmethod
    def _reference_is_a_method(cls, reference: str | None, info: ValidationInfo) -> str | None:
        keys = [method.key for method in info.data.get("methods", ())]
        if reference is not None and keys and reference not in keys:
            raise ValueError(f"expected the key of a method: {', '.join(keys)}; came '{reference}'")
        return reference

    @property
    def failed(self) -> bool:
        """Whether no method could be measured."""
        return all(method.error is not None or method.absent is not None for method in self.methods)

    @property
    def machine(self) -> tuple[Any, ...]:
        """What tells this machine from others."""
        return tuple(self.environment.get(key) for key in _MACHINE)

    @property
    def work(self) -> dict[str, str | int | float]:
        """What was done, without how often."""
        return {key: value for key, value in self.workload.items() if key not in _EFFORT}


def read_bench(file: Path, entry: str) -> list[BenchRun]:
    """The runs of an entry; none where there is no such file.

    Args:
        file: `bench.json`, or the folder that it lies in.

    Raises:
        ManifestError: the file is not right; says all that is wrong with it.
    """
    return read_list(_file(file), entry, BenchRun)


def check_bench(file: Path, entry: str) -> None:
    """Whether runs can be kept: what is there is right, and may be replaced.

    Raises:
        ManifestError: the file is not right.
        InputError: it cannot be written.
    """
    read_bench(file, entry)
    check_replaceable(_file(file))


def write_bench(file: Path, runs: Sequence[BenchRun]) -> Path:
    """Write the runs, whole or not at all; returns the file.

    Raises:
        OSError: it cannot be written.
    """
    file = _file(file)
    replace_file(file, by_lines([run.model_dump(exclude_unset=True) for run in runs], "methods"))
    return file


def _file(file: Path) -> Path:
    return file / BENCH_FILE if file.is_dir() else file


def merged(kept: Sequence[BenchRun], new: BenchRun) -> list[BenchRun]:
    """The runs with a new one, which comes first.

    A run of the same machine, work, versions and definition becomes one with it: a method replaces that of the same
    key, and the others stay. One of other versions stays beside it; one of another definition is of no use and goes.
    """
    others: list[BenchRun] = []
    for run in kept:
        if (run.machine, run.work) != (new.machine, new.work):
            others.append(run)
        elif run.environment == new.environment and run.program == new.program:
            new = _together(run, new)
        elif run.program is None or new.program in (None, run.program):
            others.append(run)
    return [new, *others]


def _together(old: BenchRun, new: BenchRun) -> BenchRun:
    """Both runs as one, methods in the old one's order."""
    known = {method.key for method in old.methods}
    # One that was measured before, and is not installed now, keeps its figures.
    measured = {method.key for method in new.methods if method.absent is None or method.key not in known}
    kept = {method.key: method for method in old.methods if method.key not in measured}
    reference = new.reference
    if old.reference in kept and (reference is None or kept[old.reference].kind == "reference"):
        reference = old.reference
    found = {
        **{method.key: method for method in old.methods},
        **{key: _beside(method, old.reference, reference) for key, method in kept.items()},
        **{
            method.key: _beside(method, new.reference, reference)
            for method in new.methods
            if method.key in measured
        },
    }
    if old.beside != new.beside:
        found |= {key: found[key].model_copy(update={"ratio": None}) for key in kept}
    changed = {
        "date": max(old.date, new.date, key=_moment),
        "workload": {**new.workload, **_effort(old, new)},
        "methods": list(found.values()),
        "reference": reference,
    }
    return new.model_copy(update=changed)


def _beside(method: Method, was: str | None, reference: str | None) -> Method:
    """A method of a run with another reference: its distance to this one was not measured."""
    if was == reference or method.max_abs_diff is None:
        return method
    return method.model_copy(update={"max_abs_diff": None})


def _effort(old: BenchRun, new: BenchRun) -> dict[str, int | float]:
    """Of two runs that become one, the fewer rounds and the higher load: no figure looks better measured than it is."""
    found: dict[str, int | float] = {}
    for key, worse in (("rounds", min), ("warmup", min), ("load_average", max)):
        numbers = list(_numbers(run.workload.get(key) for run in (old, new)))
        if numbers:
            found[key] = worse(numbers)
    return found


def _numbers(values: Iterable[object]) -> Iterable[int | float]:
    return (value for value in values if isinstance(value, int | float))


def _moment(date: str) -> datetime:
    found = datetime.fromisoformat(date)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
