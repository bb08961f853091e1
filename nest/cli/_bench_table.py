"""A run of `nest bench` as text."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from nest.registry.bench import BenchRun, Method

__all__ = ["bench_table"]


def bench_table(name: str, run: BenchRun) -> str:
    """The run as Markdown; what failed has its reason in place of figures, and so has what was not measured."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    columns = list(dict.fromkeys(key for method in run.methods for key in method.metrics))
    beside = next((method.method for method in run.methods if method.key == run.beside), None)
    ratio = [] if beside is None else [f"of {beside}"]
    lines = [
        f"**{name}**, " + ", ".join(f"{key} {value}" for key, value in run.workload.items()),
        "",
        ", ".join(f"{key} {value}" for key, value in run.environment.items()),
        "",
        "| " + " | ".join(["method", *columns, *ratio, "max diff", ""]) + " |",
        "|---" * (len(columns) + len(ratio) + 3) + "|",
    ]
    for method in run.methods:
        figures = [_figure(method, key) for key in columns]
        if ratio:
            figures.append("" if method.ratio is None else f"{method.ratio:.2f}")
        distance = "" if method.max_abs_diff is None else f"{method.max_abs_diff:.1e}"
        lines.append("| " + " | ".join([method.method, *figures, distance, _verdict(method)]) + " |")
    return "\n".join([*lines, "", *_settings(run)])


def _figure(method: Method, key: str) -> str:
    """The median, and the least and the most in brackets."""
    if key not in method.metrics:
        return ""
    median = f"{method.metrics[key]:.4g}"
    if key not in method.spread:
        return median
    least, most = method.spread[key]
    return f"{median} ({least:.4g} to {most:.4g})"


def _verdict(method: Method) -> str:
    if method.absent is not None:
        return method.absent
    return f"**failed**: {method.error}" if method.error else ""


def _settings(run: BenchRun) -> Iterator[str]:
    for method in run.methods:
        if method.notes and method.absent is None:
            yield f"{method.method}: {method.notes}."
    yield "Medians; in brackets the least and the most. Contenders took turns, in an order that was turned round."
