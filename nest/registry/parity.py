"""`parity.json`: the parity matrix of an entry as `nest verify NAME --save` measured it.

A list of runs. A run is of one configuration (`full` or `tiny`), one kind of weights and one kind of input; `program`
is the digest of what was measured, so that nobody takes its numbers for those of another definition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from nest.registry._fields import Commit, Line, Sha256, iso_date
from nest.registry._records import by_lines, check_replaceable, read_list, replace_file
from nest.registry.manifest import Table

__all__ = ["PARITY_FILE", "ParityRow", "ParityRun", "check_parity", "merged", "read_parity", "write_parity"]

PARITY_FILE = "parity.json"

Number = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Count = Annotated[int, Field(ge=0)]


class ParityRow(Table):
    """One output on one backend, plan and element type; the worst over `batches`, rows beside each other.

    `difference` is max|Δ| to the f64 oracle, `relative` that over max|ref|, `scale` max|ref|; `library` is max|Δ| to
    the reference library, `library_error` the library's own to the oracle. `choices` argmaxes or tokens were compared,
    of which `flips` differ; `tokens` is `equal` or says where they differ. `limit` is what the row was held to. A
    failed row stands alone, never put together with another.
    """

    output: Line
    backend: Line
    plan: str
    dtype: Line
    batches: list[Count]
    difference: Number | None = None
    relative: Number | None = None
    scale: Number | None = None
    library: Number | None = None
    library_error: Number | None = None
    choices: Count = 0
    flips: Count = 0
    tokens: str | None = None
    limit: str | None = None
    status: Literal["ok", "failed", "left out"] = "ok"
    reason: str | None = None


class ParityRun(Table):
    """What was measured on one day, on one machine. `revision` is the commit of real weights."""

    configuration: Literal["full", "tiny"]
    weights: Literal["real", "random"]
    input: Line
    revision: Commit | None = None
    program: Sha256
    conditions: dict[str, str | int]
    rows: list[ParityRow] = Field(min_length=1)

    @field_validator("conditions")
    @classmethod
    def _dated(cls, conditions: dict[str, str | int]) -> dict[str, str | int]:
        if "date" in conditions:
            iso_date(str(conditions["date"]))
        return conditions

    @field_validator("rows")
    @classmethod
    def _each_once(cls, rows: list[ParityRow]) -> list[ParityRow]:
        places = Counter((*_place(row), row.output, str(row.batches)) for row in rows)
        for (backend, plan, dtype, output, batches), count in places.items():
            if count > 1:
                where = ", ".join(word for word in (backend, plan, dtype, f"batches {batches}") if word)
                raise ValueError(
                    f"{count} rows are of '{output}' on {where}; expected one: take the others away"
                )
        return rows


def read_parity(folder: Path, entry: str) -> list[ParityRun]:
    """The runs of the entry in `folder`; none where it has no such file.

    Raises:
        ManifestError: the file is not right; says all that is wrong with it.
    """
    return read_list(folder / PARITY_FILE, entry, ParityRun)


def check_parity(folder: Path, entry: str) -> None:
    """Whether runs can be kept in `folder`: what is there is right, and may be replaced.

    Raises:
        ManifestError: the file is not right.
        InputError: it cannot be written.
    """
    read_parity(folder, entry)
    check_replaceable(folder / PARITY_FILE)


def write_parity(folder: Path, runs: Sequence[ParityRun]) -> Path:
    """Write the runs, whole or not at all; returns the file.

    Raises:
        OSError: it cannot be written.
    """
    file = folder / PARITY_FILE
    replace_file(file, by_lines([_facts(run) for run in runs], "rows"))
    return file


def merged(kept: Sequence[ParityRun], new: ParityRun) -> list[ParityRun]:
    """The runs with a new one, the newest first: rows of the same configuration, weights, input, backend, plan and
    element type are replaced, all others kept. A run of which no row is left goes."""
    replaced = {_place(row) for row in new.rows}
    found = [new]
    for run in kept:
        alike = _setting(run) == _setting(new)
        rows = [row for row in run.rows if not (alike and _place(row) in replaced)]
        if rows:
            found.append(run.model_copy(update={"rows": rows}))
    return found


def _setting(run: ParityRun) -> tuple[str, str, str]:
    return run.configuration, run.weights, run.input


def _place(row: ParityRow) -> tuple[str, str, str]:
    return row.backend, row.plan, row.dtype


def _facts(run: ParityRun) -> dict[str, Any]:
    facts = run.model_dump(exclude_none=True, exclude={"rows"})
    return {**facts, "rows": [row.model_dump(exclude_defaults=True) for row in run.rows]}
