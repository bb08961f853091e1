"""What an evaluation found, as data: for the catalog, and for whoever looks at each recording."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from nest.evaluating.evaluate import Evaluation, Result
from nest.evaluating.scores import Counts
from nest.ir.printer import digest
from nest.loading import program_of
from nest.registry import Entry
from nest.registry.evaluations import EvalRun, merged, read_eval, write_eval
from nest.verify.conditions import conditions

__all__ = ["facts", "peak_mib", "run_of", "save"]


def run_of(
    entry: Entry,
    data: str,
    found: Evaluation,
    *,
    settings: Mapping[str, Any],
    load_s: float,
    first_s: float,
    trust_source: bool | None = None,
) -> EvalRun:
    """The run in the form of `eval.json`.

    Args:
        data: what the recordings are called.
        found: with at least one result.
        settings: backend, plan, and what was asked of the transcriber; None is left out.
    """
    weights = entry.manifest.weights
    environment = {name: value for name, value in conditions().items() if name != "date"}
    named = [(result.name, result.reference) for result in found.results]
    return EvalRun.model_validate(
        {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": environment,
            "data": {
                "name": data,
                "recordings": len(named),
                "seconds": _digits(found.seconds),
                "digest": sha256(repr(named).encode()).hexdigest(),
            },
            "settings": {name: value for name, value in settings.items() if value is not None},
            "normalizers": list(found.normalizers),
            "words": counts(found.words),
            "characters": counts(found.characters),
            "real_time_factor": _digits(found.processing / found.seconds),
            "load_s": _digits(load_s),
            "first_s": _digits(first_s),
            "peak_mib": peak_mib(),
            "program": digest(program_of(entry, trust_source=trust_source)),
            "revision": weights.revision if weights else None,
        }
    )


def facts(entry: Entry, run: EvalRun | None, found: Evaluation) -> dict[str, Any]:
    """All of it as JSON: the run, None of it where nothing could be evaluated, then each recording."""
    whole = {} if run is None else run.model_dump(exclude_none=True)
    return {
        "model": entry.name,
        **whole,
        "processing_s": _digits(found.processing),
        "results": [_result(result) for result in found.results],
        "failed": [{"file": fault.name, "why": fault.why} for fault in found.faults],
    }


def save(entry: Entry, run: EvalRun) -> Path:
    """Keep a run in the entry's `eval.json`: see `nest.registry.evaluations.merged` for what it replaces.

    Raises:
        ManifestError: the entry's file is not right.
        OSError: it cannot be written.
    """
    return write_eval(entry.directory, merged(read_eval(entry.directory, entry.name), run))


def counts(found: Counts) -> dict[str, Any]:
    """Counts and their rate."""
    edits = {name: value for name, value in asdict(found).items() if name != "hits"}
    return {"rate": _digits(found.rate), "length": found.length, **edits}


def peak_mib() -> float | None:
    """The most memory that this process had, in MiB; None on systems that do not say."""
    try:
        import resource
    except ImportError:
        return None
    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def _result(result: Result) -> dict[str, Any]:
    return {
        "file": result.name,
        "seconds": round(result.seconds, 3),
        "processing_s": _digits(result.processing),
        "language": result.language,
        "normalizer": result.normalizer,
        "reference": result.reference,
        "text": result.text,
        "words": counts(result.words),
        "characters": counts(result.characters),
    }


def _digits(value: float) -> float:
    """Four digits: no more were measured."""
    return float(f"{value:.4g}")
