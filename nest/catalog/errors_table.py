"""What a transcriber gets wrong, as HTML: a line for each set of recordings and way to decode."""

from __future__ import annotations

from collections.abc import Sequence

from nest.catalog.markup import escape, table
from nest.catalog.metrics import hardware
from nest.registry.evaluations import ErrorCounts, EvalRun

__all__ = ["errors_table"]


def errors_table(runs: Sequence[EvalRun]) -> str:
    """The runs, those of the same recordings beside each other."""
    head = ["Recordings", "Decoded", "Words wrong", "Characters wrong", "Real-time factor", "Measured"]
    ordered = sorted(runs, key=lambda run: (run.data.name, run.data.digest))
    return table(head, [_line(run) for run in ordered])


def _line(run: EvalRun) -> list[str]:
    data, settings = run.data, run.settings
    asked = [f"{settings.get('backend', '?')}, {settings.get('plan', '?')}"]
    if settings.get("task") == "translate":
        asked.append("into English")
    if "language" in settings:
        asked.append(f"in {settings['language']}")
    if "batch_size" in settings:
        asked.append(f"{settings['batch_size']} windows at a time")
    if not settings.get("vad", True):
        asked.append("without voice activity")
    where = f"{hardware(run.environment, {})}, {run.date[:10]}; normaliser {', '.join(run.normalizers)}"
    return [
        escape(f"{data.name}: {data.recordings} recordings, {_minutes(data.seconds)}"),
        escape(", ".join(asked)),
        _rate(run.words),
        _rate(run.characters),
        escape(f"{run.real_time_factor:.3g}"),
        escape(where),
    ]


def _rate(counts: ErrorCounts) -> str:
    edits = counts.substitutions + counts.deletions + counts.insertions
    return escape(f"{100 * counts.rate:.2f} % ({edits:,} of {counts.length:,})")


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
