"""What is asked of a session's states, checked before any of them is touched."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nest._suggest import aside
from nest.errors import CallError
from nest.ir.dtype import bytes_per_element
from nest.ir.inventory import states
from nest.ir.program import Function, Program, path_text

__all__ = [
    "allocating",
    "checked_positions",
    "checked_rows",
    "checked_states",
    "forget",
    "take_rows",
    "touched_states",
]

Array = npt.NDArray[Any]
_KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class Session(Protocol):
    """The session that is asked."""

    program: Program
    symbols: dict[str, int]


def touched_states(function: Function) -> tuple[list[str], list[str]]:
    """The states that an entry uses, and those of them that it writes, by definition path."""
    used = sorted(map(path_text, function.reads | function.writes))
    return used, sorted(map(path_text, function.writes))


@contextlib.contextmanager
def allocating(program: Program, symbols: Mapping[str, int]) -> Iterator[None]:
    """Where the states of a session are made: what they would take is said if they cannot be."""
    try:
        yield
    except (MemoryError, RuntimeError, ValueError, OverflowError, TypeError) as error:
        size = sum(
            math.prod(spec.bound(symbols)) * bytes_per_element(spec.dtype)
            for spec in states(program).values()
        )
        values = ", ".join(f"{n}={v}" for n, v in symbols.items())
        raise CallError(
            f"The states of a session of {program.name} with {values} take {size / 1e9:.1f} GB, and could not be "
            f"made: {str(error).partition(chr(10))[0]}"
        ) from error


def checked_positions(session: Session, pos: Any) -> Array:
    """Int64 [Batch], each from 0 to `Capacity`; one number stands for every row."""
    given = np.asarray(pos)
    rows, slots = session.symbols["Batch"], session.symbols.get("Capacity", 0)
    wanted = (
        f"truncate of a session of {session.program.name} takes one position, or one for each of {rows} rows"
    )
    if given.dtype.kind not in "iu" or given.shape not in ((), (rows,)):
        raise CallError(f"{wanted}, as integers; {given.dtype} of shape {list(given.shape)} came.")
    if given.min() < 0 or given.max() > slots:
        raise CallError(f"{wanted}, from 0 to Capacity = {slots}; {given.tolist()} came.")
    return np.broadcast_to(given.astype(np.int64), (rows,))


def checked_rows(session: Session, rows: Any) -> list[int]:
    """Rows of a session, at least one."""
    given = np.asarray(list(rows))
    batch = session.symbols["Batch"]
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= batch:
        raise CallError(
            f"Rows of this session of {session.program.name} are integers from 0 to {batch - 1}, at least one; "
            f"{given.tolist()} came."
        )
    return [int(row) for row in given]


def checked_states(session: Session, given: Mapping[str, Array]) -> dict[str, Array]:
    """States of the shapes and kinds of number that the session has, in its order."""
    specs = states(session.program)
    faults = [f"'{n}' is missing" for n in specs if n not in given]
    faults += [f"'{n}' is no state{aside(n, specs)}" for n in given if n not in specs]
    values = {n: _plain(given[n]) for n in specs if n in given}
    for name, value in values.items():
        shape, dtype = specs[name].bound(session.symbols), specs[name].dtype
        if value.shape != shape or _KINDS.get(value.dtype.kind) != _kind(dtype):
            faults.append(f"'{name}' must be {dtype} {list(shape)}, and is {value.dtype} {list(value.shape)}")
    if faults:
        raise CallError(
            f"These are not the states of a session of {session.program.name}{_text(session.symbols)}: "
            f"{'; '.join(faults)}."
        )
    return values


def forget(program: Program, held: Mapping[str, Array], kept: Array) -> None:
    """Zero, in place, the slots from kept[row] on of every numpy state that has slots."""
    for path, spec in states(program).items():
        if spec.write_axis is None:
            continue
        for row, first in enumerate(kept):
            where: list[Any] = [slice(None)] * held[path].ndim
            where[spec.batch_axis], where[spec.write_axis] = row, slice(int(first), None)
            held[path][tuple(where)] = 0


def take_rows(
    program: Program,
    held: Mapping[str, Array],
    given: Mapping[str, Array],
    rows: list[int],
    paths: Sequence[str],
) -> None:
    """Copy rows of numpy states into the memory of others, which may be the same: then only those that move."""
    specs = states(program)
    for path in paths:
        target, source, axis = held[path], given[path], specs[path].batch_axis
        if target is not source:
            np.take(source, rows, axis=axis, out=target, mode="clip")  # in range, and so without another copy
            continue
        moved = [row for row, taken in enumerate(rows) if row != taken]
        where: list[Any] = [slice(None)] * target.ndim
        where[axis] = moved
        if moved:
            target[tuple(where)] = source.take([rows[row] for row in moved], axis=axis)


def _plain(value: Any) -> Array:
    """An array in a type that numpy has itself: bf16 becomes f32, exactly."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _kind(dtype: str) -> str:
    return "bool" if dtype == "bool" else "int" if dtype[0] in "iu" else "float"


def _text(symbols: Mapping[str, int]) -> str:
    return " with " + ", ".join(f"{n} = {v}" for n, v in symbols.items())
