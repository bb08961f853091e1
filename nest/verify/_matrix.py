"""The parity matrix: one setting on backends, at their plans and element types, in batches."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from nest.backends.installed import BACKENDS
from nest.errors import CallError, MissingDependencyError
from nest.ir.plan import PLANS
from nest.verify._measure import Published, common, measure, told
from nest.verify._published import PublishedResults
from nest.verify.compare import compare, worst
from nest.verify.library import library_of
from nest.verify.limits import Limit
from nest.verify.records import Record, Session
from nest.verify.rows import Row, Status, measured
from nest.verify.script import arguments_of
from nest.verify.setting import Setting
from nest.verify.tokens import (
    whole_prefix,
)

__all__ = ["MEASURED", "matrix"]

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

    Raises:
        MissingDependencyError: the framework of a backend that is named is not installed, or cannot be imported.
    """
    for backend in backends:
        BACKENDS[backend].check(backend)
    published = library_of(setting.entry, setting.program, setting.params) if library else None
    beside = PublishedResults(setting, published) if published is not None else None
    yield from _cached_against_whole(setting)
    if beside is not None:
        yield from beside.rows()
    for backend in backends or [name for name in MEASURED if BACKENDS[name].installed]:
        for dtype in dtypes:
            yield from _on(setting, backend, dtype, plans, beside)
            gc.collect()
    setting.oracle.prune()


def _on(
    setting: Setting, backend: str, dtype: str, plans: Sequence[str], published: Published | None
) -> Iterator[Row]:
    try:
        model = setting.load(backend, dtype)
    except MissingDependencyError:
        raise  # of this environment, and nothing about the entry
    except Exception as error:
        # A backend may not compute in an element type, and says so; everything loads in f32.
        status: Status = "left out" if isinstance(error, CallError) and dtype != "f32" else "failed"
        yield Row(**common(setting, backend, "", dtype, 0), output="load", status=status, reason=told(error))
        return
    for plan in plans_of(model):
        if plans and plan not in plans:
            continue
        for batch in setting.batches:
            place = common(setting, backend, plan, dtype, len(batch))
            yield from measure(
                setting, partial(new_session, model, plan, len(batch)), batch, place, published
            )


def plans_of(model: Any) -> tuple[str, ...]:
    """The plans that a loaded model's sessions can have."""
    return tuple(PLANS) if "plan" in inspect.signature(model.new_session).parameters else ("exact",)


def new_session(model: Any, plan: str, rows: int) -> Session:
    """A session of a plan, for some rows."""
    options = {} if plan == "exact" else {"plan": plan}
    session: Session = model.new_session(Batch=rows, **options)
    return session


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
            place = common(setting, "oracle", "exact", "f64", 1)
            yield measured(place, f"{cached} against {name}", worst(found), Limit(1e-5))


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
