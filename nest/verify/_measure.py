"""The rows of one session: every entry's results, then tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from nest.errors import NestError
from nest.verify.compare import Difference, compare, worst
from nest.verify.feed import id_spaces
from nest.verify.limits import Limit
from nest.verify.records import Record, Session, replay
from nest.verify.rows import Row, measured
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

__all__ = ["Found", "Published", "common", "measure", "outputs", "token_row", "told"]

Array = np.ndarray[Any, Any]
Found = Sequence[Sequence[tuple[Array, ...]]]
"""For each call and each row, the results."""


class Published(Protocol):
    """The reference library's results on the same rows."""

    def against(
        self, batch: Sequence[int], found: Found, output: tuple[str, int]
    ) -> tuple[float | None, float | None]:
        """max|Δ| of an output to the library's, and of the library's to the oracle's."""


def measure(
    setting: Setting,
    make: Callable[[], Session],
    batch: Sequence[int],
    place: dict[str, Any],
    published: Published | None = None,
) -> Iterator[Row]:
    """The rows of some rows beside each other: every entry, then tokens.

    Args:
        make: gives a new session of as many rows.
    """
    records = [setting.records[row] for row in batch]
    dtype = place["dtype"]
    try:
        found = list(replay(setting.program, make(), records))
        for output, index, differences in outputs(setting, found, records):
            limit = setting.limit(_entry_of(output), dtype)
            beside, own = published.against(batch, found, index) if published else (None, None)
            yield measured(place, output, worst(differences), limit, library=beside, library_error=own)
        yield from _tokens(setting, make, batch, records, place)
    except Exception as error:  # one backend's failure is a row, and the others are still measured
        yield Row(**place, output="run", status="failed", reason=told(error))


def outputs(
    setting: Setting, found: Found, records: Sequence[Sequence[Record]]
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
    place: dict[str, Any],
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
    allowed = _allowed(setting, setting.limit("step", place["dtype"]))
    yield token_row(place, "tokens, cached", [t.ids for t in cached], right, allowed)
    if whole_prefix(setting.program) is not None:
        uncached = without_caches(setting.program, session, records, decoding, cached)
        yield token_row(place, "tokens, uncached", uncached, cached, allowed)
    loop = getattr(session, "program", setting.program).entries.get(WHOLE)
    if loop is not None:
        names = [p.name for p in loop.signature.parameters]
        yield token_row(
            place, "tokens, one call", in_one_call(make(), before, decoding, names), right, allowed
        )


def _allowed(setting: Setting, limit: Limit) -> float:
    """The margin below which a choice of the oracle's is a matter of the rounding that the limit admits."""
    logits = [r.results[0] for row in setting.records for r in row if r.entry == "step"]
    return limit.margin(max(float(np.abs(x).max()) for x in logits))


def token_row(
    place: dict[str, Any], output: str, got: Sequence[Sequence[int]], right: Sequence[Any], allowed: float
) -> Row:
    wrong = mismatch(got, right)
    count = sum(len(t.ids) for t in right)
    if wrong is None:
        return Row(**place, output=output, tokens="equal", choices=count)
    row, at, margin = wrong
    what = f"row {row} differs at token {at}, which the oracle prefers by {margin:.1e}"
    return Row(
        **place, output=output, tokens=what, choices=count, status="ok" if margin <= allowed else "failed"
    )


def common(setting: Setting, backend: str, plan: str, dtype: str, batch: int) -> dict[str, Any]:
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


def told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, NestError) else f"{type(error).__name__}: {text}"
