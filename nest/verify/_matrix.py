"""The parity matrix: one setting on backends, at their plans and element types, in batches."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from nest.backends.installed import BACKENDS
from nest.errors import CallError, NestError
from nest.ir.plan import PLANS
from nest.verify.compare import Difference, compare, worst
from nest.verify.feed import id_spaces
from nest.verify.library import library_of
from nest.verify.limits import Limit, limit_of
from nest.verify.records import Record, Session, replay
from nest.verify.rows import Row, Status, measured
from nest.verify.script import arguments_of
from nest.verify.setting import Setting
from nest.verify.tokens import (
    WHOLE,
    before_prefill,
    in_one_call,
    mismatch,
    stepwise,
    whole_prefix,
    without_caches,
)

__all__ = ["MEASURED", "matrix", "measure", "outputs"]

Array = np.ndarray[Any, Any]

MEASURED = tuple(name for name in BACKENDS if name != "reference")
"""The backends that are measured where none is named: those that are installed here."""


def matrix(
    setting: Setting,
    *,
    backends: Sequence[str] = (),
    plans: Sequence[str] = (),
    dtypes: Sequence[str] = ("f32",),
    library: bool = True,
) -> Iterator[Row]:
    """Measure, row by row as each is done.

    Args:
        backends: all that are installed if empty. plans: all that a backend has if empty.
        library: measure the reference library too, where it is installed.
    """
    published = library_of(setting.entry, setting.program, setting.params) if library else None
    beside = _Published(setting, published) if published is not None else None
    yield from _cached_against_whole(setting)
    if beside is not None:
        yield from beside.rows()
    for backend in backends or [name for name in MEASURED if BACKENDS[name].installed]:
        for dtype in dtypes:
            yield from _on(setting, backend, dtype, plans, beside)
            gc.collect()
    setting.oracle.prune()


def _on(
    setting: Setting, backend: str, dtype: str, plans: Sequence[str], published: _Published | None
) -> Iterator[Row]:
    try:
        model = setting.load(backend, dtype)
    except Exception as error:
        # A backend may not compute in an element type, and says so; everything loads in f32.
        status: Status = "left out" if isinstance(error, CallError) and dtype != "f32" else "failed"
        yield Row(
            **_common(setting, backend, "", dtype, 0), output="load", status=status, reason=_told(error)
        )
        return
    for plan in plans_of(model):
        if plans and plan not in plans:
            continue
        for batch in setting.batches:
            common = _common(setting, backend, plan, dtype, len(batch))
            yield from measure(
                setting, partial(new_session, model, plan, len(batch)), batch, common, published
            )


def plans_of(model: Any) -> tuple[str, ...]:
    """The plans that a loaded model's sessions can have."""
    return tuple(PLANS) if "plan" in inspect.signature(model.new_session).parameters else ("exact",)


def new_session(model: Any, plan: str, rows: int) -> Session:
    """A session of a plan, for some rows."""
    options = {} if plan == "exact" else {"plan": plan}
    session: Session = model.new_session(Batch=rows, **options)
    return session


def measure(
    setting: Setting,
    make: Callable[[], Session],
    batch: Sequence[int],
    common: dict[str, Any],
    published: _Published | None = None,
) -> Iterator[Row]:
    """The rows of some rows beside each other: every entry, then tokens.

    Args:
        make: gives a new session of as many rows.
    """
    records = [setting.records[row] for row in batch]
    dtype = common["dtype"]
    try:
        found = list(replay(setting.program, make(), records))
        for output, index, differences in outputs(setting, found, records):
            limit = limit_of(setting.entry, _entry_of(output), dtype, real=setting.weights == "real")
            beside, own = published.against(batch, found, index) if published else (None, None)
            yield measured(common, output, worst(differences), limit, library=beside, library_error=own)
        yield from _tokens(setting, make, batch, records, common)
    except Exception as error:  # one backend's failure is a row, and the others are still measured
        yield Row(**common, output="run", status="failed", reason=_told(error))


def outputs(
    setting: Setting, found: Sequence[Sequence[tuple[Array, ...]]], records: Sequence[Sequence[Record]]
) -> Iterator[tuple[str, tuple[str, int], list[Difference]]]:
    """Each result of each entry with its differences, over all calls and rows; its label, entry and position."""
    order: dict[tuple[str, int], list[Difference]] = {}
    for position, rows in enumerate(found):
        for row, results in enumerate(rows):
            record = records[row][position]
            for index, (got, want) in enumerate(zip(results, record.results, strict=True)):
                choices = _chooses(setting, record.entry, index)
                order.setdefault((record.entry, index), []).append(compare(got, want, choices=choices))
    for (name, index), differences in order.items():
        single = setting.program.entries[name].signature.single
        yield name if single else f"{name}[{index}]", (name, index), differences


def _entry_of(output: str) -> str:
    return output.partition("[")[0]


def _chooses(setting: Setting, name: str, index: int) -> bool:
    """Whether the last axis of a result is a space of ids, so that its largest is a choice."""
    shape = setting.program.entries[name].signature.results[index].shape
    return bool(shape) and any(shape[-1].same(space) for space in id_spaces(setting.program))


def _tokens(
    setting: Setting,
    make: Callable[[], Session],
    batch: Sequence[int],
    records: Sequence[Sequence[Record]],
    common: dict[str, Any],
) -> Iterator[Row]:
    if setting.decoding is None:
        return
    decoding, right = setting.decoding.rows(batch), [setting.tokens[row] for row in batch]
    before = before_prefill(setting.program, records)
    session = make()

    def call(name: str, arguments: list[Array]) -> Array:
        made = session.run_entry(name, arguments)
        return np.asarray(session.numpy(made[0] if isinstance(made, tuple) else made))

    cached = stepwise(setting.program, call, before, decoding)
    limit = limit_of(setting.entry, "step", common["dtype"], real=setting.weights == "real")
    allowed = _allowed(setting, limit)
    yield _token_row(common, "tokens, cached", [t.ids for t in cached], right, allowed)
    if whole_prefix(setting.program) is not None:
        uncached = without_caches(setting.program, session, records, decoding, cached)
        yield _token_row(common, "tokens, uncached", uncached, cached, allowed)
    loop = getattr(session, "program", setting.program).entries.get(WHOLE)
    if loop is not None:
        names = [p.name for p in loop.signature.parameters]
        yield _token_row(
            common, "tokens, one call", in_one_call(make(), before, decoding, names), right, allowed
        )


def _allowed(setting: Setting, limit: Limit) -> float:
    """The margin below which a choice of the oracle's is a matter of the rounding that the limit admits."""
    logits = [r.results[0] for row in setting.records for r in row if r.entry == "step"]
    return limit.margin(max(float(np.abs(x).max()) for x in logits))


def _token_row(
    common: dict[str, Any], output: str, got: Sequence[Sequence[int]], right: Sequence[Any], allowed: float
) -> Row:
    wrong = mismatch(got, right)
    count = sum(len(t.ids) for t in right)
    if wrong is None:
        return Row(**common, output=output, tokens="equal", choices=count)
    row, at, margin = wrong
    what = f"row {row} differs at token {at}, which the oracle prefers by {margin:.1e}"
    return Row(
        **common, output=output, tokens=what, choices=count, status="ok" if margin <= allowed else "failed"
    )


def _cached_against_whole(setting: Setting) -> Iterator[Row]:
    """Whether a definition's cached entries give the logits of its whole prefixes: on the oracle, without rounding."""
    name = whole_prefix(setting.program)
    if name is None or setting.decoding is None:
        return
    for cached in ("prefill", "step"):
        found = []
        for records in setting.records:
            whole = next(r for r in records if r.entry == name).results[0]
            for record in (r for r in records if r.entry == cached):
                last = _last_position(setting, record)
                if last < whole.shape[1] and _same_ids(setting, record, records, name, last):
                    found.append(compare(record.results[0], whole[:, last]))
        if found:
            # The audio of whole prefixes was rounded to f32 on its way.
            common = _common(setting, "oracle", "exact", "f64", 1)
            yield measured(common, f"{cached} against {name}", worst(found), Limit(1e-5))


def _last_position(setting: Setting, record: Record) -> int:
    for argument in arguments_of(setting.program.entries[record.entry]):
        if argument.role == "position":
            return int(record.arguments[argument.name].max())
    return int(next(a for a in record.arguments.values() if a.ndim == 2).shape[1]) - 1


def _same_ids(setting: Setting, record: Record, records: Sequence[Record], name: str, last: int) -> bool:
    """Whether a cached call goes on with the very ids of the whole prefix."""
    whole = next(r for r in records if r.entry == name)
    ids = next(a for a in whole.arguments.values() if a.ndim == 2 and a.dtype.kind == "i")
    own = next(a for a in record.arguments.values() if a.ndim == 2 and a.dtype.kind == "i")
    return bool((ids[:, last + 1 - own.shape[1] : last + 1] == own).all())


class _Published:
    """The reference library's results on the same rows, each alone."""

    def __init__(self, setting: Setting, library: Any) -> None:
        self.setting = setting
        self.library = library
        self.found: list[list[list[tuple[Array, ...]]]] = []
        self.tokens: list[list[int]] = []
        for row, records in enumerate(setting.records):
            session = library.new_session()
            known = [r for r in records if r.entry in session.entries]
            self.kept = [i for i, r in enumerate(records) if r.entry in session.entries]
            self.found.append(list(replay(setting.program, session, [known])))
            if setting.decoding is not None:
                self.tokens.append(session.greedy(setting.decoding.rows([row])))

    def rows(self) -> Iterator[Row]:
        """The library's own distance from the oracle: told, and bound by nothing."""
        setting = self.setting
        common = _common(setting, self.library.name, "exact", "f32", 1)
        merged: dict[str, list[Difference]] = {}
        for records, found in zip(setting.records, self.found, strict=True):
            known = [records[i] for i in self.kept]
            for output, _, differences in outputs(setting, found, [known]):
                merged.setdefault(output, []).extend(differences)
        for output, differences in merged.items():
            yield measured(common, output, worst(differences), Limit())
        if self.tokens:
            yield _token_row(common, "tokens, generate", self.tokens, setting.tokens, 0.0)

    def against(
        self, batch: Sequence[int], found: Sequence[Sequence[tuple[Array, ...]]], output: tuple[str, int]
    ) -> tuple[float | None, float | None]:
        """max|Δ| of a backend's results to the library's, and of the library's to the oracle's."""
        name, index = output
        beside, own = [], []
        for place, position in enumerate(self.kept):
            for at, row in enumerate(batch):
                record = self.setting.records[row][position]
                if record.entry != name:
                    continue
                theirs = self.found[row][place][0][index]
                beside.append(compare(found[position][at][index], theirs).largest)
                own.append(compare(theirs, record.results[index]).largest)
        return (max(beside), max(own)) if beside else (None, None)


def _common(setting: Setting, backend: str, plan: str, dtype: str, batch: int) -> dict[str, Any]:
    return {
        "entry": setting.entry.name,
        "configuration": setting.configuration,
        "weights": setting.weights,
        "input": setting.input,
        "backend": backend,
        "plan": plan,
        "dtype": dtype,
        "batch": batch,
    }


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, NestError) else f"{type(error).__name__}: {text}"
