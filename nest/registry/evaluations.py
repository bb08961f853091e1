"""`eval.json`: how many words a transcriber gets wrong, as `nest eval NAME --data DIR --save` measured it.

A list of runs, each of one set of recordings, one way to decode and one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nest.registry._fields import IsoDate, Line, Sha256
from nest.registry._records import by_lines, check_replaceable, read_list, replace_file
from nest.registry.manifest import Table

__all__ = [
    "EVAL_FILE",
    "DataFacts",
    "ErrorCounts",
    "EvalRun",
    "check_eval",
    "merged",
    "read_eval",
    "write_eval",
]

EVAL_FILE = "eval.json"

Number = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Count = Annotated[int, Field(ge=0)]
Some = Annotated[int, Field(ge=1)]

_MACHINE = ("machine", "processor", "cpus", "gpu", "gpus")
"""The facts of an environment that tell machines apart."""


class DataFacts(Table):
    """What was heard. `digest` is of the names and transcripts of its recordings."""

    name: Line
    recordings: Some
    seconds: Number
    digest: Sha256


class ErrorCounts(Table):
    """The edits that make the references of the texts; `rate` is all of them by the `length` of the references."""

    rate: Number
    length: Some
    substitutions: Count
    deletions: Count
    insertions: Count


class EvalRun(Table):
    """What was measured in one run.

    `settings` are the backend, the plan, and what was asked of the transcriber; `normalizers` say in what form texts
    were compared. `real_time_factor` is seconds of processing by seconds of audio; `load_s` and `first_s`, the load and
    the first call, are no part of it. `program` is the digest of the definition, `revision` the commit of the weights.
    """

    date: IsoDate
    environment: dict[str, str | int]
    data: DataFacts
    settings: dict[str, str | int | float | bool]
    normalizers: list[Line] = Field(min_length=1)
    words: ErrorCounts
    characters: ErrorCounts
    real_time_factor: Number
    load_s: Number
    first_s: Number
    peak_mib: Number | None = None
    program: Sha256
    revision: str | None = None

    @property
    def place(self) -> tuple[Any, ...]:
        """What makes two runs the same measurement: machine, recordings and settings."""
        machine = tuple(self.environment.get(key) for key in _MACHINE)
        return machine, self.data.name, self.data.digest, tuple(sorted(self.settings.items()))


def read_eval(folder: Path, entry: str) -> list[EvalRun]:
    """The runs of the entry in `folder`; none where it has no such file.

    Raises:
        ManifestError: the file is not right; says all that is wrong with it.
    """
    return read_list(folder / EVAL_FILE, entry, EvalRun)


def check_eval(folder: Path, entry: str) -> None:
    """Whether runs can be kept in `folder`: what is there is right, and may be replaced.

    Raises:
        ManifestError: the file is not right.
        InputError: it cannot be written.
    """
    read_eval(folder, entry)
    check_replaceable(folder / EVAL_FILE)


def write_eval(folder: Path, runs: Sequence[EvalRun]) -> Path:
    """Write the runs, whole or not at all; returns the file.

    Raises:
        OSError: it cannot be written.
    """
    file = folder / EVAL_FILE
    replace_file(file, by_lines([run.model_dump(exclude_none=True) for run in runs], ""))
    return file


def merged(kept: Sequence[EvalRun], new: EvalRun) -> list[EvalRun]:
    """The runs with a new one, which comes first and replaces the same measurement, and those of other definitions."""
    return [new, *(run for run in kept if run.place != new.place and run.program == new.program)]
