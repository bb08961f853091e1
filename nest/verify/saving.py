"""A measured matrix, kept beside its entry as `parity.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from nest.errors import CallError
from nest.ir.printer import digest
from nest.ir.program import Program
from nest.registry import Entry
from nest.registry.parity import ParityRow, ParityRun, merged, read_parity, write_parity
from nest.verify.rows import Row, together

__all__ = ["check_kept", "save"]

_KEPT = ("full", "tiny")


def save(
    entry: Entry, program: Program, rows: Sequence[Row], conditions: Mapping[str, str | int]
) -> Path | None:
    """Keep the rows of one setting beside the entry: see `nest.registry.parity.merged` for what they replace.

    Rows of several batches become one, the worst in each respect, unless one of them is not within its bounds.

    Args:
        program: what was measured.
        rows: of one entry in one setting.
        conditions: the machine and the versions.

    Returns:
        The file; None where there are no rows.

    Raises:
        CallError: the rows are of a configuration that pages do not show.
        ManifestError: the entry's file is not right.
        OSError: it cannot be written.
    """
    if not rows:
        return None
    first = rows[0]
    check_kept(first.configuration)
    weights = entry.manifest.weights
    run = ParityRun.model_validate(
        {
            "configuration": first.configuration,
            "weights": first.weights,
            "input": first.input,
            "revision": weights.revision if weights and first.weights == "real" else None,
            "program": digest(program),
            "conditions": dict(conditions),
            "rows": _merged_rows(rows),
        }
    )
    return write_parity(entry.directory, merged(read_parity(entry.directory, entry.name), run))


def check_kept(configuration: str) -> None:
    """Whether rows of a configuration can be kept.

    Raises:
        CallError: pages do not show that configuration.
    """
    if configuration not in _KEPT:
        raise CallError(
            f"--save keeps what was measured at the entry's own size and its tiny configuration; this is "
            f"'{configuration}'. Leave -D and --quantize out."
        )


def _merged_rows(rows: Sequence[Row]) -> list[ParityRow]:
    """One row for the batches of each output, backend, plan and type; what is not within its bounds stands alone."""
    alike: dict[tuple[object, ...], list[Row]] = {}
    for number, row in enumerate(rows):
        apart = number if row.status == "failed" else -1
        key = (row.output, row.backend, row.plan, row.dtype, row.limit, row.status, row.reason, apart)
        alike.setdefault(key, []).append(row)
    return [_kept(together(members)) for members in alike.values()]


def _kept(row: Row) -> ParityRow:
    return ParityRow(
        output=row.output,
        backend=row.backend,
        plan=row.plan,
        dtype=row.dtype,
        batches=[batch for batch in row.batches if batch],
        difference=_number(row.difference),
        relative=_number(row.relative),
        scale=_number(row.scale),
        library=_number(row.library),
        library_error=_number(row.library_error),
        choices=row.choices,
        flips=row.flips,
        tokens=row.tokens,
        limit=row.limit,
        status=row.status,
        reason=row.reason,
    )


def _number(value: float | None) -> float | None:
    """Three digits; none where it is not finite, which the reason says."""
    return float(f"{value:.3g}") if value is not None and math.isfinite(value) else None
