"""The parity matrix as HTML: outputs by backends, what failed first and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nest.catalog.markup import code, element, escape, table
from nest.registry.parity import ParityRow, ParityRun

__all__ = ["conditions_words", "parity_table"]

_ORDER = ("torch", "jax", "nnx", "onnx", "transformers")
_LIBRARIES = ("transformers",)


def parity_table(run: ParityRun) -> str:
    """One run: what failed, the worst of each output on each backend, and the same by plan, folded."""
    parts = [_failures(run), *(_of_type(run, dtype) for dtype in _types(run)), _left_out(run)]
    return "\n".join(part for part in parts if part)


def conditions_words(run: ParityRun) -> str:
    """`AMD EPYC, 2 CPUs; torch 2.13.0, jax 0.10.2`."""
    known = run.conditions
    packages = ("torch", "jax", "flax", "onnxruntime", "transformers", "numpy")
    versions = ", ".join(f"{name} {known[name]}" for name in packages if name in known)
    return f"{known.get('processor', 'a processor')}, {known.get('cpus', '?')} CPUs; {versions}"


def _types(run: ParityRun) -> list[str]:
    return list(dict.fromkeys(row.dtype for row in run.rows if row.backend not in ("oracle", *_LIBRARIES)))


def _failures(run: ParityRun) -> str:
    failed = [row for row in run.rows if row.status == "failed"]
    if not failed:
        return ""
    items = "".join(element("li", _failure(row)) for row in failed)
    count = f"{len(failed)} row{'s' if len(failed) > 1 else ''} failed"
    return f'<div class="nest-failures" role="note"><p><strong>{count}</strong></p><ul>{items}</ul></div>'


def _failure(row: ParityRow) -> str:
    batches = f", batch {', '.join(map(str, row.batches))}" if row.batches else ""
    where = f"{row.backend}{f', {row.plan}' if row.plan else ''}, {row.dtype}{batches}"
    number = "" if row.difference is None else f" (max|Δ| {row.difference:.1e})"
    return f"{code(row.output)} on {escape(where)}: {escape(_reason(row))}{number}"


def _reason(row: ParityRow) -> str:
    return row.reason or (row.tokens if row.tokens not in (None, "equal") else None) or "failed"


def _of_type(run: ParityRun, dtype: str) -> str:
    rows = [row for row in run.rows if row.dtype == dtype or row.backend in ("oracle", *_LIBRARIES)]
    backends = [name for name in _ORDER if any(row.backend == name for row in rows)]
    shown = [row for row in rows if row.backend in backends and row.status != "left out"]
    outputs = sorted(
        dict.fromkeys(row.output for row in shown), key=lambda name: not _any_failed(shown, name)
    )
    body = [_line(name, [row for row in shown if row.output == name], backends) for name in outputs]
    head = [
        "Output",
        "Tolerance",
        *(f"{name}, f32" if name in _LIBRARIES else f"{name}, {dtype}" for name in backends),
    ]
    return _table(head, body) + _by_plan(shown, outputs, backends, dtype) + _cached(rows)


def _any_failed(rows: Iterable[ParityRow], output: str) -> bool:
    return any(row.output == output and row.status == "failed" for row in rows)


def _line(output: str, rows: Sequence[ParityRow], backends: Sequence[str]) -> list[str]:
    limit = next((row.limit for row in rows if row.limit), None) or (
        "equal" if output.startswith("tokens") else ""
    )
    cells = [_cell([row for row in rows if row.backend == backend], relative=True) for backend in backends]
    return [escape(output), escape(limit.replace(" of the largest", " rel.")), *cells]


def _cell(rows: Sequence[ParityRow], *, relative: bool = False) -> str:
    """The worst of some rows; a failed one is told in words, never as a number alone."""
    if not rows:
        return '<span class="nest-quiet">not measured</span>'
    failed = next((row for row in rows if row.status == "failed"), None)
    if failed is not None:
        return f'<strong class="nest-bad">failed</strong>: {escape(_reason(failed))}'
    different = next((row.tokens for row in rows if row.tokens not in (None, "equal")), None)
    if different is not None:
        return escape(different)
    if all(row.tokens for row in rows):
        return f"equal ({sum(row.choices for row in rows)})"
    number = _worst(row.difference for row in rows)
    of_largest = _worst(row.relative for row in rows)
    if not relative or not of_largest:
        return number
    return f'{number}<br><span class="nest-quiet">{of_largest} rel.</span>'


def _worst(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{max(known):.1e}" if known else ""


def _by_plan(rows: Sequence[ParityRow], outputs: Sequence[str], backends: Sequence[str], dtype: str) -> str:
    """max|Δ| by plan, over batches of the sizes that the caption says."""
    places = [
        (name, plan)
        for name in backends
        if name not in _LIBRARIES
        for plan in dict.fromkeys(row.plan for row in rows if row.backend == name)
    ]
    body = []
    for output in outputs:
        cells = [
            _cell([r for r in rows if (r.output, r.backend, r.plan) == (output, *place)]) for place in places
        ]
        body.append([escape(output), *cells])
    batches = sorted({batch for row in rows for batch in row.batches if row.backend not in _LIBRARIES})
    words = f"By plan, {dtype}: max|Δ|, the worst over batches of {' and '.join(map(str, batches))}"
    inner = _table(["Output", *(f"{name}, {plan}" for name, plan in places)], body)
    return f"<details><summary>{escape(words)}</summary>{inner}</details>\n"


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table under headings of plain text; cells are HTML already."""
    return table([escape(cell) for cell in head], body, label=", ".join(head), class_="nest-parity")


def _cached(rows: Sequence[ParityRow]) -> str:
    """What the definition says of itself: cached entries against whole prefixes, on the oracle."""
    own = [row for row in rows if row.backend == "oracle"]
    if not own:
        return ""
    said = "; ".join(f"{escape(row.output)}: {_cell([row])}" for row in own)
    return f"<p>The definition against itself in f64, max|Δ|: {said}.</p>\n"


def _left_out(run: ParityRun) -> str:
    items = [
        element("li", f"{escape(row.backend)}, {escape(row.dtype)}: {escape(row.reason or 'left out')}")
        for row in run.rows
        if row.status == "left out"
    ]
    return f"<p>Left out:</p><ul>{''.join(items)}</ul>" if items else ""
