"""One row on the oracle, call by call; and several rows at once on a session that is to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nest.ir.program import Program
from nest.verify.feed import Feed, Row
from nest.verify.oracle import Oracle
from nest.verify.script import call_order, rows_symbol

__all__ = ["Record", "Session", "record_row", "replay"]

Array = np.ndarray[Any, Any]


class Session(Protocol):
    """What is measured: see `nest.backends.session.BaseSession`."""

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry with its arguments in order."""

    def numpy(self, value: Any) -> Any:
        """A result on the host."""


@dataclass(frozen=True)
class Record:
    """One call of one row: its arguments by name, and what the oracle gave."""

    entry: str
    arguments: dict[str, Array]
    results: tuple[Array, ...]


def record_row(oracle: Oracle, feed: Feed, index: int) -> list[Record]:
    """All calls of one row, alone on a session of its own."""
    capacity = {} if feed.capacity is None else {"Capacity": feed.capacity}
    session = oracle.new_session(Batch=1, **capacity)
    row, records = Row(index), []
    for name in call_order(oracle.program):
        arguments = feed.arguments(name, row)
        results = session.call(name, list(arguments.values()))
        feed.advance(name, row, arguments, results)
        records.append(Record(name, arguments, results))
    return records


def replay(
    program: Program, session: Session, rows: Sequence[Sequence[Record]]
) -> Iterator[list[tuple[Array, ...]]]:
    """The same calls with the rows beside each other, one after another.

    Yields:
        For each call the results of each row, cut to the size that they have where the row is alone.
    """
    for calls in zip(*rows, strict=True):
        name = calls[0].entry
        arguments = beside(program, name, [c.arguments for c in calls])
        made = session.run_entry(name, arguments)
        results = [np.asarray(session.numpy(r)) for r in (made if isinstance(made, tuple) else (made,))]
        yield [_row(program, name, results, i, call) for i, call in enumerate(calls)]


def beside(program: Program, name: str, rows: Sequence[dict[str, Array]]) -> list[Array]:
    """The arguments of several rows as those of one call; shorter ones are padded with zeros at the end."""
    function = program.entries[name]
    symbol = rows_symbol(function)
    joined = []
    for parameter in function.signature.parameters:
        values = [row[parameter.name] for row in rows]
        if not parameter.type.rank or parameter.type.shape[0].as_symbol() != symbol:
            joined.append(values[0])
            continue
        size = [max(sizes) for sizes in zip(*(v.shape for v in values), strict=True)]
        padded = [np.pad(v, [(0, s - n) for s, n in zip(size, v.shape, strict=True)]) for v in values]
        joined.append(np.concatenate(padded))
    return joined


def _row(
    program: Program, name: str, results: Sequence[Array], index: int, call: Record
) -> tuple[Array, ...]:
    function = program.entries[name]
    symbol = rows_symbol(function)
    own = []
    for type_, array, alone in zip(function.signature.results, results, call.results, strict=True):
        if type_.rank and type_.shape[0].as_symbol() == symbol:
            array = array[index : index + 1]
        own.append(array[tuple(slice(n) for n in alone.shape)])
    return tuple(own)
