"""A benchmark's run as a chart: a table whose figures have bars, so that it reads as well without seeing them."""

from __future__ import annotations

from collections.abc import Sequence

from nest.catalog.markup import element, escape, table
from nest.catalog.metrics import METRICS, Metric, headline
from nest.registry.bench import BenchRun, Method

__all__ = ["speed_chart"]

_MEMORY = ("peak_mib", "peak_vram_mib")


def speed_chart(run: BenchRun, task: str | None) -> str:
    """Methods that failed first, without figures; then the fastest first; last what was not measured, and why.

    Bars are of the main figure and of memory. The main figure is the whole job's where peers did that alone.
    """
    names = [name for name in METRICS if any(name in method.metrics for method in run.methods)]
    main = headline(task) or ""
    main = (
        "task_ms"
        if any(method.kind == "peer" and "task_ms" in method.metrics for method in run.methods)
        else main
    )
    main = main if main in names else next(iter(names), "")
    names.sort(key=lambda name: name != main)  # stable: the others keep their order
    most = {name: max(method.metrics.get(name, 0) for method in run.methods) for name in (main, *_MEMORY)}
    beside = next((m.method for m in run.methods if m.key == run.beside and _has_ratio(run)), None)
    methods = sorted(run.methods, key=lambda m: _place(m, main))
    rows = [_row(method, names, most, beside is not None) for method in methods]
    head = ["Method", *(_heading(METRICS[name]) for name in names)]
    if beside is not None:
        head.append(f'Time<br><span class="nest-quiet">of {escape(beside)}</span>')
    return table(head, rows, class_="nest-chart") + _notes(run.methods)


def _has_ratio(run: BenchRun) -> bool:
    return any(method.ratio is not None and method.key != run.beside for method in run.methods)


def _place(method: Method, main: str) -> tuple[bool, bool, bool, float]:
    value = method.metrics.get(main, 0.0)
    better = main in METRICS and METRICS[main].more_is_better
    return (
        method.absent is not None,
        method.error is None,
        main not in method.metrics,
        -value if better else value,
    )


def _heading(metric: Metric) -> str:
    return f'{escape(metric.title)}<br><span class="nest-quiet">{escape(metric.unit)}</span>'


def _row(method: Method, names: Sequence[str], most: dict[str, float], beside: bool) -> list[str]:
    name = escape(method.method)
    empty = ["" for _ in names] + ([""] if beside else [])
    if method.error is not None:
        failed = f'<strong class="nest-bad">failed</strong>: {escape(method.error)}'
        return [f"{name}<br>{failed}", *empty]
    if method.absent is not None:
        return [f'{name}<br><span class="nest-quiet">{escape(method.absent)}</span>', *empty]
    ratio = "" if method.ratio is None else f"{method.ratio:.2f}"
    return [name, *(_figure(method, key, most) for key in names), *([ratio] if beside else [])]


def _figure(method: Method, key: str, most: dict[str, float]) -> str:
    if key not in method.metrics:
        return '<span class="nest-quiet">not measured</span>'
    value = method.metrics[key]
    text = _number(key, value)
    if key in method.spread:
        least, most_of_all = (_number(key, bound) for bound in method.spread[key])
        text += f'<br><span class="nest-quiet">{least} to {most_of_all}</span>'
    if not most.get(key):
        return text
    kind = "memory" if key in _MEMORY else method.kind
    width = max(
        1, round(100 * (value / most[key]))
    )  # of two figures as they come: 100 times one may be too much
    bar = element(
        "span", "", class_=f"nest-bar nest-bar--{kind}", style=f"width:{width}%", aria_hidden="true"
    )
    return f"{text}{bar}"


def _number(key: str, value: float) -> str:
    """Without its unit, which the heading has."""
    return METRICS[key].text(value).rpartition(" ")[0]


def _notes(methods: Sequence[Method]) -> str:
    said: dict[str, list[str]] = {}
    for method in methods:
        if method.notes and method.absent is None:
            said.setdefault(method.notes, []).append(method.method)
    items = "".join(element("li", f"{escape(', '.join(who))}: {escape(note)}") for note, who in said.items())
    return f"<ul>{items}</ul>\n" if items else ""
