"""Where a backend first diverges: the block whose inputs agree and whose result does not, and the operation in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest.backends.reference.model import build as build_reference
from nest.ir.program import Function, Program, path_text
from nest.loading import build_model
from nest.verify.compare import Difference, compare
from nest.verify.limits import PROJECT
from nest.verify.records import Record
from nest.verify.setting import Setting
from nest.verify.tap import Tap, tapped

__all__ = ["Divergence", "diff"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Divergence:
    """What was found of one entry.

    Attributes:
        entry: which. values: how many were compared. largest: the largest max|Δ| / max|ref| among those that agree, and
            what it was of.
        at: the first value that diverges, or None; `found` is its difference.
        operation: the first wrong operation in the block that is to blame, where it could be told.
    """

    entry: str
    values: int
    largest: tuple[float, str]
    at: Tap | None = None
    found: Difference | None = None
    operation: Tap | None = None

    @property
    def block(self) -> str:
        """The path of the block that is to blame, with its method."""
        return "" if self.at is None else place(self.at)

    @property
    def line(self) -> str:
        """Where the wrong operation stands: file, line and the line's text."""
        place = self.operation and self.operation.location
        return f"{place.file}:{place.line}: {place.source}" if place else ""

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        facts: dict[str, Any] = {"entry": self.entry, "values": self.values, "largest": self.largest[0]}
        if self.at is None or self.found is None:
            return facts
        facts |= {"block": self.block, "value": self.at.what}
        facts |= {
            "difference": self.found.largest,
            "relative": self.found.relative,
            "scale": self.found.scale,
        }
        if self.operation is not None:
            facts |= {"operation": self.operation.op, "line": self.line}
        return facts


def diff(
    setting: Setting,
    backend: str,
    *,
    against: str = "reference",
    entries: Sequence[str] = (),
    dtype: str = "f32",
    above: float | None = None,
    params: Mapping[str, Array] | None = None,
) -> Iterator[Divergence]:
    """Compare each entry with taps between its blocks, on the first row's inputs.

    Args:
        against: `"reference"` for the f64 oracle, or another backend.
        entries: all that are verified if empty, in the order of their calls.
        dtype: of the backend; the other side keeps f32, or f64.
        above: max|Δ| / max|ref| from which a value diverges; the project's bound for the dtype if None.
        params: of the backend, in place of the setting's.
    """
    limit = PROJECT[dtype] if above is None else above
    records = setting.records[0]
    seen: set[str] = set()
    for position, record in enumerate(records):
        if record.entry in seen or (entries and record.entry not in entries):
            continue
        seen.add(record.entry)
        pair = _Pair(setting, backend, against, dtype, params or setting.params)
        yield _compared(pair, records[: position + 1], limit)


class _Pair:
    """A backend and what it is compared with, over one tapped program."""

    def __init__(
        self, setting: Setting, backend: str, against: str, dtype: str, params: Mapping[str, Array]
    ) -> None:
        self.setting = setting
        self.backend = backend
        self.against = against
        self.dtype = dtype
        self.params = params

    def run(
        self, records: Sequence[Record], blamed: Function | None = None
    ) -> Iterator[tuple[Tap, Difference]]:
        """Each tapped value of the last call with its difference, in the order of the run."""
        name = records[-1].entry
        own, taps = self._side(self.backend, self.dtype, self.params, records, blamed)
        other, _ = self._side(self.against, "f32", self.setting.params, records, blamed)
        count = len(self.setting.program.entries[name].results)
        order = [*range(count, len(own)), *range(count)]
        for tap, index in zip(taps, order, strict=True):
            if own[index].size:
                yield tap, compare(own[index], other[index])

    def _side(
        self,
        backend: str,
        dtype: str,
        params: Mapping[str, Array],
        records: Sequence[Record],
        blamed: Function | None,
    ) -> tuple[list[Array], list[Tap]]:
        """The results of a tapped entry, after the calls that fill its states."""
        program = self.setting.typed(dtype)
        name = records[-1].entry
        target = None if blamed is None else (blamed.block.name, blamed.name)
        changed, taps = tapped(program, name, lambda f: (f.block.name, f.name) == target)
        before = [
            r
            for r in records[:-1]
            if program.entries[r.entry].uses_state and program.entries[name].uses_state
        ]
        # What runs before it is the program's own, over the same blocks.
        entries = {r.entry: program.entries[r.entry] for r in before}
        whole = Program(program.name, changed.root, {**entries, **changed.entries}, program.rules)
        session = self._model(backend, whole, params).new_session(Batch=1)
        for record in before:
            session.run_entry(record.entry, list(record.arguments.values()))
        made = session.run_entry(f"{name}_tapped", list(records[-1].arguments.values()))
        results = made if isinstance(made, tuple) else (made,)
        return [np.asarray(session.numpy(r)) for r in results], taps

    def _model(self, backend: str, program: Program, params: Mapping[str, Array]) -> Any:
        if backend == "reference":
            return build_reference(program, params, precision="f64")
        return build_model(program, params, backend)


def _compared(pair: _Pair, records: Sequence[Record], limit: float) -> Divergence:
    name = records[-1].entry
    count, largest = 0, (0.0, "")
    for tap, found in pair.run(records):
        count += 1
        if found.finite and found.relative <= limit:
            largest = max(largest, (found.relative, place(tap)))
            continue
        return Divergence(name, count, largest, tap, found, _operation(pair, records, tap, limit))
    return Divergence(name, count, largest)


def _operation(pair: _Pair, records: Sequence[Record], tap: Tap, limit: float) -> Tap | None:
    """The first wrong operation of the function that is to blame, found by a second run that looks into it."""
    block = pair.setting.program.root.child(tap.path)
    functions = [f for f in pair.setting.program.functions() if f.name == tap.function]
    blamed = next((f for f in functions if f.block.key == block.key), None)
    if blamed is None or block.module.startswith("nest.layers.standard"):
        return None  # backends have their own classes for these, which are one operation
    for inner, found in pair.run(records, blamed):
        if not (found.finite and found.relative <= limit):
            return inner if inner.op is not None else None
    return None


def place(tap: Tap) -> str:
    """`encoder_layers.0.mlp`, or `encoder_layers.0.self_attn.attend` for another method than `forward`."""
    return path_text(tap.path if tap.path and tap.function == "forward" else (*tap.path, tap.function))
