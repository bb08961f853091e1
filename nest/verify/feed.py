"""What the entries are called with, row by row: a row's values do not depend on the rows beside it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nest.errors import CallError
from nest.ir.dim import Dim
from nest.ir.program import Function, Program
from nest.ir.types import TensorType
from nest.verify.script import STEPS, Argument, arguments_of, rows_symbol

__all__ = ["Feed", "Row", "id_spaces"]

Array = np.ndarray[Any, Any]

# Sizes of free axes, no two alike; the first that fits is taken.
_SIZES = (7, 5, 9, 11, 6, 4, 8, 3, 10, 13, 2, 1)
_IDS = 256


@dataclass
class Row:
    """What one row has met: the results of entries by name, in f32, and the next slot of its caches."""

    index: int
    results: list[tuple[TensorType, Array]] = field(default_factory=list)
    position: int = 0


class Feed:
    """Draws a row's arguments.

    Floats are N(0, 1); a float that an earlier entry gives, such as a decoder's view of the encoder's states, is that
    entry's result. Ids are drawn below what they index, one sequence for each such space, of which prompts are the
    beginning and steps the continuation.

    Args:
        program: whose entries.
        capacity: slots of the caches; None where there are none.
        seed: of everything drawn.
        floats: in place of drawn ones, by argument's name: [rows, ...].
        ids: in place of drawn ones, by size of the space: a sequence for each row.
        lengths: of each row's prompt in place of chosen ones.
    """

    def __init__(
        self,
        program: Program,
        capacity: int | None,
        *,
        seed: int = 0,
        floats: Mapping[str, Array] | None = None,
        ids: Mapping[int, Sequence[Sequence[int]]] | None = None,
        lengths: Sequence[int] = (),
    ) -> None:
        self.program = program
        self.capacity = capacity
        self.seed = seed
        self.floats = dict(floats or {})
        self.ids = dict(ids or {})
        self.lengths = list(lengths)
        self._generics = {
            n: int(d) for n, d in program.root.generics.items() if isinstance(d, Dim) and d.value is not None
        }

    def arguments(self, name: str, row: Row) -> dict[str, Array]:
        """The arguments of an entry for one row, each with a first axis of 1 where the entry has rows."""
        function = self.program.entries[name]
        known = arguments_of(function)
        symbols = self._symbols(function)
        given: dict[str, Array] = {}
        for argument in known:
            if _is_shared(argument, function):
                continue
            value = self._given(argument, row, symbols)
            if value is not None:
                given[argument.name] = value
                _bind(symbols, argument.parameter.type, value)
        full = self._sizes(function, symbols)
        own = self._own_lengths(known, row, full)
        for argument in known:
            if argument.name not in given:
                drawn = Row(0) if _is_shared(argument, function) else row
                given[argument.name] = self._drawn(argument, drawn, {**full, **own}, known)
        return {a.name: given[a.name] for a in known}

    def advance(self, name: str, row: Row, arguments: Mapping[str, Array], results: Sequence[Array]) -> None:
        """Note what a call gave, and where the row's next slot is."""
        function = self.program.entries[name]
        for type_, array in zip(function.signature.results, results, strict=True):
            if array.dtype.kind == "f":
                row.results.append((type_, array.astype(np.float32)))
        known = arguments_of(function)
        if not function.writes or not _takes_slots(function):
            return
        step = next((arguments[a.name].shape[1] for a in known if a.parameter.type.rank > 1), 1)
        row.position = step + (row.position if any(a.role == "position" for a in known) else 0)

    def _symbols(self, function: Function) -> dict[str, int]:
        symbols = dict(self._generics)
        if (rows := rows_symbol(function)) is not None:
            symbols[rows] = 1
        if self.capacity is not None:
            symbols["Capacity"] = self.capacity
        return symbols

    def _given(self, argument: Argument, row: Row, symbols: Mapping[str, int]) -> Array | None:
        if argument.role != "float":
            return None
        if argument.name in self.floats:
            return self.floats[argument.name][row.index : row.index + 1]
        free = [
            d.as_symbol() not in symbols and d.as_symbol() is not None for d in argument.parameter.type.shape
        ]
        for type_, array in reversed(row.results):
            if _fits(argument.parameter.type, type_, free):
                return array
        return None

    def _sizes(self, function: Function, symbols: Mapping[str, int]) -> dict[str, int]:
        """The first sizes of the remaining symbols that the rules admit, with room for steps."""
        sizes = dict(symbols)
        for symbol in function.signature.generics:
            if symbol in sizes:
                continue
            taken = {sizes[s] for s in function.signature.generics if s in sizes and sizes[s] > 1}
            fitting = [n for n in _SIZES if n not in taken and self._admitted(function, {**sizes, symbol: n})]
            if not fitting:
                raise CallError(
                    f"No size of '{symbol}' from 1 to 13 satisfies the rules of '{function.name}'."
                )
            sizes[symbol] = fitting[0]
        return sizes

    def _admitted(self, function: Function, sizes: dict[str, int]) -> bool:
        roomier = {
            n: s + STEPS if n in function.signature.generics and s > 1 else s for n, s in sizes.items()
        }
        roomier = {**roomier, **{n: s for n, s in sizes.items() if n == rows_symbol(function)}}
        for rule in function.signature.rules:
            if rule.symbols() <= sizes.keys() and not (rule.check(sizes) and rule.check(roomier)):
                return False
        return True

    def _own_lengths(self, known: list[Argument], row: Row, sizes: Mapping[str, int]) -> dict[str, int]:
        """How long this row is where an entry takes lengths; rows differ."""
        own = {}
        for argument in known:
            if argument.role == "lengths" and argument.symbol is not None:
                most = sizes[argument.symbol]
                own[argument.symbol] = max(1, most - (0, 2, 1)[row.index % 3])
                if self.lengths:
                    own[argument.symbol] = self.lengths[row.index]
        return own

    def _drawn(self, argument: Argument, row: Row, sizes: Mapping[str, int], known: list[Argument]) -> Array:
        shape = [d.evaluate(sizes) for d in argument.parameter.type.shape]
        if argument.role == "lengths":
            return np.full(shape, sizes[str(argument.symbol)], np.int32)
        if argument.role == "position":
            return np.full(shape, row.position, np.int32)
        rng = self._rng(argument.name, row.index)
        if argument.role == "float":
            return rng.standard_normal(shape).astype(np.float32)
        if argument.role == "bool":
            values = rng.random(shape) < 0.75
            values.reshape(-1)[:1] = True
            return values
        start = row.position if any(a.role == "position" for a in known) else 0
        high = Dim.of(argument.high).evaluate(sizes)
        return self._ids(argument, row, high, start, shape)

    def _ids(self, argument: Argument, row: Row, high: int, start: int, shape: list[int]) -> Array:
        if len(shape) == 2 and high in self.ids:
            sequence = np.asarray(self.ids[high][row.index], np.int32)
        else:
            sequence = (
                self._rng(f"ids below {high}", row.index).integers(argument.low, high, _IDS).astype(np.int32)
            )
        count = int(np.prod(shape))
        if start + count > len(sequence):
            sequence = np.resize(sequence, start + count)
        return sequence[start : start + count].reshape(shape)

    def _rng(self, what: str, row: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(what.encode()), row])


def id_spaces(program: Program) -> list[Dim]:
    """Sizes of the spaces that ids of the program's entries are from, such as `Vocab`."""
    found: dict[Any, Dim] = {}
    for function in program.entries.values():
        for argument in arguments_of(function):
            if argument.role == "ids" and isinstance(argument.high, Dim):
                found.setdefault(argument.high.key, argument.high)
    return list(found.values())


def _takes_slots(function: Function) -> bool:
    """Whether an entry writes places of a cache, itself or in what it calls."""
    for node in function.nodes:
        inner = node.attrs.get("function")
        if node.op == "update" or (isinstance(inner, Function) and _takes_slots(inner)):
            return True
    return False


def _is_shared(argument: Argument, function: Function) -> bool:
    """Whether an argument has no axis of rows: rows beside each other are called with one and the same."""
    shape = argument.parameter.type.shape
    rows = rows_symbol(function)
    return argument.role == "float" and bool(shape) and rows is not None and shape[0].as_symbol() != rows


def _fits(wanted: TensorType, got: TensorType, free: list[bool]) -> bool:
    if wanted.rank != got.rank or wanted.rank < 2 or got.dtype.kind != "float":
        return False
    pairs = list(zip(wanted.shape, got.shape, free, strict=True))
    # The rows agree by construction, and an axis that the call itself binds takes any size.
    return any(not f for _, _, f in pairs[1:]) and all(f or a.same(b) for a, b, f in pairs[1:])


def _bind(symbols: dict[str, int], type_: TensorType, array: Array) -> None:
    for dim, size in zip(type_.shape, array.shape, strict=True):
        name = dim.as_symbol()
        if name is not None:
            symbols.setdefault(name, size)
