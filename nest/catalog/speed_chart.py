"""A benchmark's run as a chart: a table whose figures have bars, so that it reads as well without seeing them."""

from __future__ import annotations

from collections.abc import Sequence

from nest.catalog.markup import element, escape, table
from nest.catalog.metrics import METRICS, Metric, headline
from nest.registry.bench import BenchRun, Method

__all__ = ["speed_chart"]

_MEMORY = ("peak_mib", "peak_vram_mib")


def speed_chart(run: BenchRun, task: str | None) -> str:
    """Methods that failed first, without figures; then the fastest first. Bars are of the main figure and of memory."""
    names = [name for name in METRICS if any(name in method.metrics for method in run.methods)]
    main = headline(task) or ""
    main = main if main in names else next(iter(names), "")
    names.sort(key=lambda name: name != main)  # stable: the others keep their order
    most = {name: max(method.metrics.get(name, 0) for method in run.methods) for name in (main, *_MEMORY)}
    rows = [_row(method, names, most) for method in sorted(run.methods, key=lambda m: _place(m, main))]
    head = ["Method", *(_heading(METRICS[name]) for name in names)]
    return table(head, rows, class_="nest-chart") + _notes(run.methods)


def _place(method: Method, main: str) -> tuple[bool, float]:
    value = method.metrics.get(main, 0.0)
    better = main in METRICS and METRICS[main].more_is_better
    return method.error is None, -value if better else value


def _heading(metric: Metric) -> str:
    return f'{escape(metric.title)}<br><span class="nest-quiet">{escape(metric.unit)}</span>'


def _row(method: Method, names: Sequence[str], most: dict[str, float]) -> list[str]:
    name = escape(method.method)
    if method.error is not None:
        failed = f'<strong class="nest-bad">failed</strong>: {escape(method.error)}'
        return [f"{name}<br>{failed}", *("" for _ in names)]
    return [name, *(_figure(method, key, most) for key in names)]


def _figure(method: Method, key: str, most: dict[str, float]) -> str:
    if key not in method.metrics:
        return '<span class="nest-quiet">not measured</span>'
    value = method.metrics[key]
    text = METRICS[key].text(value).rpartition(" ")[0]
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


def _notes(methods: Sequence[Method]) -> str:
    said: dict[str, list[str]] = {}
    for method in methods:
        if method.notes:
            said.setdefault(method.notes, []).append(method.method)
    items = "".join(element("li", f"{escape(', '.join(who))}: {escape(note)}") for note, who in said.items())
    return f"<ul>{items}</ul>\n" if items else ""
