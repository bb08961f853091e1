"""`bench.json`: how fast an entry is, as `nest bench NAME --save` measured it.

A list of runs, each of one machine and one workload. A run of another machine is kept beside, never overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from nest.registry._fields import Line, Sha256
from nest.registry._records import by_lines, read_list, replace_file
from nest.registry.manifest import Table

__all__ = ["BENCH_FILE", "BenchRun", "Method", "merged", "read_bench", "write_bench"]

BENCH_FILE = "bench.json"

Number = Annotated[float, Field(allow_inf_nan=False, ge=0)]

_MACHINE = ("machine", "processor", "cpus", "gpu", "gpus")
"""The facts of an environment that tell machines apart; versions of packages do not."""

_EFFORT = ("rounds", "warmup", "load_average")
"""The facts of a workload that say how well it was measured, not what."""


class Method(Table):
    """One way to do the work: `nest torch, fast`, `transformers (eager)`.

    `kind` is `nest` or `reference`. `metrics` are by name and unit (`encode_ms`, `tokens_per_s`, `peak_mib`). A method
    whose results are wrong, or that could not run, has an `error` and no metrics: a wrong result has no speed.
    `max_abs_diff` is max|Δ| to the reference's results. `key` is the name without spaces, for links and charts.
    """

    method: Line
    kind: Line
    metrics: dict[str, Number] = Field(default_factory=dict)
    max_abs_diff: Number | None = None
    notes: str = ""
    error: str | None = None
    key: Line

    @model_validator(mode="after")
    def _failed_has_no_speed(self) -> Method:
        if self.error is not None and self.metrics:
            raise ValueError(
                f"'{self.method}' has an error and metrics: a method that failed is shown without a speed; "
                f"take the metrics away, or the error if there was none"
            )
        return self


class BenchRun(Table):
    """What was measured in one run. `reference` is the key of the method whose results are right.

    `program` is the digest of the definition that was measured.
    """

    date: Line
    environment: dict[str, str | int]
    workload: dict[str, str | int | float]
    methods: list[Method] = Field(min_length=1)
    reference: str | None = None
    program: Sha256 | None = None

    @property
    def machine(self) -> tuple[Any, ...]:
        """What tells this machine from others."""
        return tuple(self.environment.get(key) for key in _MACHINE)

    @property
    def work(self) -> dict[str, str | int | float]:
        """What was done, without how often."""
        return {key: value for key, value in self.workload.items() if key not in _EFFORT}


def read_bench(folder: Path, entry: str) -> list[BenchRun]:
    """The runs of the entry in `folder`; none where it has no such file.

    Raises:
        ManifestError: the file is not right; says all that is wrong with it.
    """
    return read_list(folder / BENCH_FILE, entry, BenchRun)


def write_bench(folder: Path, runs: Sequence[BenchRun]) -> Path:
    """Write the runs, whole or not at all; returns the file.

    Raises:
        OSError: it cannot be written.
    """
    file = folder / BENCH_FILE
    replace_file(file, by_lines([run.model_dump(exclude_unset=True) for run in runs], "methods"))
    return file


def merged(kept: Sequence[BenchRun], new: BenchRun) -> list[BenchRun]:
    """The runs with a new one, the newest first; one of the same machine and work goes."""
    others = [run for run in kept if (run.machine, run.work) != (new.machine, new.work)]
    return [new, *others]
