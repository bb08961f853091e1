"""Rows of the matrix: one measured output each, with its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from nest.verify.compare import Difference
from nest.verify.limits import Limit

__all__ = ["Row", "Status", "markdown", "measured"]

Status = Literal["ok", "failed", "left out"]


@dataclass(frozen=True)
class Row:
    """One output of one backend at one plan, dtype and batch.

    Attributes:
        entry: the entry of the zoo. configuration: `full`, `tiny`, or the generics that were changed.
        weights: `real` or `random`. input: `audio`, or `drawn`.
        output: an entry of the program, or what tokens are compared.
        difference: max|Δ| to the f64 oracle. relative: over max|ref|. scale: max|ref|.
        library: max|Δ| to the reference library. library_error: of the library to the oracle.
        choices, flips: how many argmaxes were compared, and differ.
        tokens: `equal`, or where they differ; `choices` are then tokens.
        limit: what it had to satisfy. status, reason: the verdict. batches: of rows that were put together.
    """

    entry: str
    configuration: str
    weights: str
    input: str
    output: str
    backend: str
    plan: str
    dtype: str
    batch: int
    difference: float | None = None
    relative: float | None = None
    scale: float | None = None
    library: float | None = None
    library_error: float | None = None
    choices: int = 0
    flips: int = 0
    tokens: str | None = None
    limit: str | None = None
    status: Status = "ok"
    reason: str | None = None
    batches: tuple[int, ...] = ()

    def facts(self) -> dict[str, Any]:
        """As JSON has it: what was not measured is left out."""
        return {n: value for n, value in asdict(self).items() if value is not None and n != "batches"}


def measured(
    common: dict[str, Any],
    output: str,
    found: Difference,
    limit: Limit,
    *,
    library: float | None = None,
    library_error: float | None = None,
) -> Row:
    """The row of an output that was compared with the oracle."""
    ok = limit.admits(found)
    return Row(
        **common,
        output=output,
        difference=found.largest,
        relative=found.relative,
        scale=found.scale,
        library=library,
        library_error=library_error,
        choices=found.choices,
        flips=found.flips,
        limit=str(limit) or None,
        status="ok" if ok else "failed",
        reason=None if ok else _reason(found, limit),
    )


def _reason(found: Difference, limit: Limit) -> str:
    if not found.finite:
        return "NaN or infinite"
    if limit.passed_by(found):
        return f"over {limit}"
    return f"{found.flips} of {found.choices} argmaxes differ, by a margin of up to {found.margin:.1e}"


_HEAD = (
    "output", "backend", "plan", "dtype", "batch", "max diff", "of the largest", "to the library",
    "the library's own", "choices", "verdict",
)  # fmt: skip


def markdown(rows: list[Row]) -> str:
    """The rows as a Markdown table; what a table has in common stands above it."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.entry, row.configuration, row.weights, row.input), []).append(row)
    return "\n\n".join(_group(key, members) for key, members in groups.items())


def _group(key: tuple[str, ...], rows: list[Row]) -> str:
    entry, configuration, weights, given = key
    size = "" if configuration == "full" else f", {configuration}"
    title = f"**{entry}**{size}, {weights} weights, {given} input"
    alike: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.output, row.backend, row.plan, row.dtype), []).append(row)
    body = [_cells(together(members)) for members in alike.values()]
    kept = [i for i in range(len(_HEAD)) if i in (0, 1, 10) or any(cells[i] for cells in body)]
    table = [_HEAD, tuple("---" for _ in _HEAD), *body]
    lines = ["| " + " | ".join(cells[i] for i in kept) + " |" for cells in table]
    return "\n".join([title, "", *lines])


def together(rows: list[Row]) -> Row:
    """The worst in each respect of rows that differ in their batch alone; its batch is the first's."""
    wrong = next((row for row in rows if row.status != "ok"), rows[0])
    told = next((row.tokens for row in rows if row.tokens not in (None, "equal")), rows[0].tokens)
    return replace(
        wrong,
        batches=tuple(dict.fromkeys(row.batch for row in rows)),
        difference=_most(row.difference for row in rows),
        relative=_most(row.relative for row in rows),
        scale=_most(row.scale for row in rows),
        library=_most(row.library for row in rows),
        library_error=_most(row.library_error for row in rows),
        choices=sum(row.choices for row in rows),
        flips=sum(row.flips for row in rows),
        tokens=told,
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {"ok": "ok", "failed": "**failed**", "left out": "left out"}[row.status]
    return (
        row.output,
        row.backend,
        row.plan,
        row.dtype,
        ", ".join(str(batch) for batch in row.batches if batch),
        _number(row.difference),
        _number(row.relative),
        _number(row.library),
        _number(row.library_error),
        _choices(row),
        f"{verdict}: {row.reason}" if row.reason else verdict,
    )


def _choices(row: Row) -> str:
    if row.tokens is not None and row.tokens != "equal":
        return row.tokens
    if not row.choices:
        return ""
    return f"{row.choices} equal" if not row.flips else f"{row.flips} of {row.choices} differ"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"
