"""Sessions: who holds a model's states."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nest._timing import TRACED, stretch
from nest.backends._default import HoldsDefault, call_default
from nest.backends._saved import read_session, write_session
from nest.backends._states import (
    allocating,
    checked_positions,
    checked_rows,
    checked_states,
    forget,
    take_rows,
    touched_states,
)
from nest.backends._symbols import session_symbols
from nest.errors import CallError
from nest.ir.inventory import states
from nest.ir.program import Program

__all__ = [
    "BaseSession",
    "HoldsDefault",
    "allocating",
    "call_default",
    "forget",
    "session_symbols",
    "take_rows",
    "touched_states",
]

Array = npt.NDArray[Any]


class BaseSession:
    """States of one caller, over weights that all sessions share.

    Entries are methods: `session.step(token, pos)`. A session is used by one thread at a time. It keeps no position:
    what a query sees is decided by the `pos` of each call.

    Attributes:
        symbols: the values of `Batch` and `Capacity`.
    """

    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self.program = program
        self.symbols = dict(symbols)
        self._constants: dict[Hashable, Any] = {}
        self._lost: dict[str, str] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if TRACED and "call" in vars(cls):
            cls.call = _noted(cls.call)  # type: ignore[method-assign]

    @property
    def whole_decodes(self) -> bool:
        """Whether one call of a loop such as `greedy` is the fast way to decode here; else its entries are, in turn."""
        return True

    # -- calls -----------------------------------------------------------------------------------------------

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an entry: see `EntryCall` for what is checked."""
        raise NotImplementedError

    def _settled(self, result: Any) -> Any:
        """A result whose computation has ended: where a call only begins it, waited for."""
        return result

    def numpy(self, value: Any) -> Any:
        """A result as a numpy array on the host."""
        raise NotImplementedError

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self.call(name, inputs, {})

    def constant(self, key: Hashable, make: Callable[[], Array]) -> Any:
        """An argument that does not change from call to call, in the backend's own form and place.

        `make` gives the array when `key` is asked for the first time; the session and its forks keep what became of
        it. Passed to an entry, it is neither converted nor copied to a device again.
        """
        if key not in self._constants:
            self._constants[key] = self._native(make())
        return self._constants[key]

    # -- states ----------------------------------------------------------------------------------------------

    def truncate(self, pos: int | Sequence[int] | Array) -> None:
        """Keep positions 0 to pos-1 of each row, and forget the slots from pos on: they are zero afterwards.

        States that have no slots, such as what a model keeps of its audio, stay as they are.

        Args:
            pos: how many positions are kept, for all rows or for each; 0 to `Capacity`.

        Raises:
            CallError: `pos` is no such number, or the states are lost.
        """
        kept = checked_positions(self, pos)
        self._intact()
        with self._writing("truncate", self._slotted()):
            self._forget(kept)

    def fork(self, rows: Sequence[int] | Array | None = None) -> Self:
        """A new session over the same weights, whose states are copies of this one's.

        Args:
            rows: which rows it has, in order; a row may be left out or repeated. All of them if None.

        Raises:
            CallError: there is no such row, or the states are lost.
        """
        chosen = checked_rows(self, range(self.symbols["Batch"]) if rows is None else rows)
        self._intact()
        other = self._sibling({**self.symbols, "Batch": len(chosen)})
        other._constants.update(self._constants)
        other._take(self, chosen, list(states(self.program)))
        return other

    def take_from(self, other: Self, rows: Sequence[int] | Array) -> None:
        """Put copies of another session's rows in place of all that this one holds; lost states are whole again.

        It gives what `other.fork(rows)` gives, in the memory of a session that is there already.

        Args:
            other: a session of the same model, with the same `Capacity`; it stays as it is.
            rows: of `other`, one for each row of this session; a row may be left out or repeated.

        Raises:
            CallError: `other` is of another program or `Capacity`, or `rows` is not one existing row for each, or the
                states of `other` are lost.
        """
        if other.program is not self.program or _others(other) != _others(self):
            raise CallError(
                f"take_from takes a session of the same model and Capacity: {other!r} came to {self!r}. fork(rows=...) "
                f"makes one that fits."
            )
        chosen = checked_rows(other, rows)
        if len(chosen) != self.symbols["Batch"]:
            raise CallError(
                f"take_from takes one row for each of this session's {self.symbols['Batch']}, and {len(chosen)} were "
                f"given. fork(rows=...) makes a session of another size."
            )
        other._intact()
        paths = list(states(self.program))
        with self._writing("take_from", paths):
            self._take(other, chosen, paths)
        self._lost.clear()

    def reorder(self, rows: Sequence[int] | Array, *, slots_only: bool = False) -> None:
        """Give each row the states of another, in place: row i becomes what row rows[i] was.

        Args:
            rows: one for each row of the session.
            slots_only: leave states without slots where they are, which is right, and saves their copying, where row i
                and rows[i] hold the same: beams of one recording.

        Raises:
            CallError: `rows` is not one existing row for each, or the states are lost.
        """
        chosen = checked_rows(self, rows)
        if len(chosen) != self.symbols["Batch"]:
            raise CallError(
                f"reorder takes one row for each of this session's {self.symbols['Batch']}, and {len(chosen)} were "
                f"given. fork(rows=...) makes a session of another size."
            )
        self._intact()
        paths = self._slotted() if slots_only else list(states(self.program))
        with self._writing("reorder", paths):
            self._take(self, chosen, paths)

    def state_dict(self) -> dict[str, Array]:
        """A copy of every state by definition path, as numpy arrays on the host; bf16 as f32.

        Raises:
            CallError: the states are lost.
        """
        self._intact()
        return {path: np.array(self.numpy(array)) for path, array in self._live().items()}

    def load_state_dict(self, given: Mapping[str, Array]) -> None:
        """Put copies of these states in place of all that the session holds; lost states are whole again.

        Raises:
            CallError: a path is missing or unknown, or a shape or kind of number differs; nothing has changed then.
        """
        values = checked_states(self, given)
        with self._writing("load_state_dict", list(values)):
            self._put(values)
        self._lost.clear()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the states to a safetensors file, whole or not at all, for `restore` on any backend.

        Raises:
            CallError: the states are lost.
            OSError: the file cannot be written.
        """
        write_session(Path(path), self.program, self.symbols, self.state_dict())

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Put the states of a saved session in place of this one's.

        That the weights are those which the states were computed with is up to the caller.

        Raises:
            CallError: it was saved from another program, or with another `Batch` or `Capacity`.
            WeightsError: the file is missing, damaged, or no saved session.
        """
        self.load_state_dict(read_session(Path(path), self.program, self.symbols))

    # -- what a backend gives --------------------------------------------------------------------------------

    def _native(self, array: Array) -> Any:
        """An array in the backend's own form, where its results are."""
        raise NotImplementedError

    def _sibling(self, symbols: Mapping[str, int]) -> Self:
        """A new session of these symbols over the same weights."""
        raise NotImplementedError

    def _live(self) -> Mapping[str, Any]:
        """The states themselves, by definition path."""
        raise NotImplementedError

    def _put(self, values: Mapping[str, Array]) -> None:
        """Take copies of these values, of the right shapes and kinds, as the states."""
        raise NotImplementedError

    def _forget(self, kept: Array) -> None:
        """Zero the slots from kept[row] on, Int64 [Batch], of every state that has slots."""
        raise NotImplementedError

    def _take(self, source: Self, rows: list[int], paths: Sequence[str]) -> None:
        """Take copies of these rows of the source's states; the source may be this session."""
        raise NotImplementedError

    # -- failure ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self, what: str, paths: Sequence[str]) -> Iterator[None]:
        """Where states are written: what breaks off here leaves them half-written, and they count as lost."""
        try:
            yield
        except BaseException as error:
            text = str(error).strip().partition("\n")[0]
            reason = f"'{what}' failed while it wrote them ({type(error).__name__}{': ' * bool(text)}{text})"
            self._lost.update(dict.fromkeys(paths, reason))
            raise

    def _intact(self, paths: Sequence[str] | None = None) -> None:
        """Refuse to use states that are lost; all of them where no paths are given."""
        lost = [reason for path, reason in self._lost.items() if paths is None or path in paths]
        if lost:
            raise CallError(
                f"The states of this session of {self.program.name} are lost: {lost[0]}. Take a new session: "
                f"model.new_session(Batch={self.symbols['Batch']})."
            )

    @property
    def broken(self) -> bool:
        """Whether a failed call has left states that cannot be used."""
        return bool(self._lost)

    def _slotted(self) -> list[str]:
        """The states that are written slot by slot."""
        return [path for path, spec in states(self.program).items() if spec.write_axis is not None]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name == "program" or name not in self.program.entries:
            raise AttributeError(
                f"{type(self).__name__} of {self.program.name} has no attribute '{name}'; its entries: "
                f"{', '.join(self.program.entries)}"
            )
        return lambda *args, **kwargs: self.call(name, args, kwargs)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.program.entries})

    def __reduce__(self) -> Any:
        raise CallError(
            f"A session of {self.program.name} cannot be pickled or copied so; fork() copies it, and save(path) writes "
            f"its states."
        )

    def __repr__(self) -> str:
        symbols = ", ".join(f"{n}={v}" for n, v in self.symbols.items())
        return f"<{type(self).__name__} of {self.program.name}, {symbols}>"


def _noted(call: Callable[..., Any]) -> Callable[..., Any]:
    """A session's `call` under the name of its entry, in times that are asked for."""

    @functools.wraps(call)
    def noted(session: BaseSession, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        with stretch(name):
            return session._settled(call(session, name, args, kwargs))

    return noted


def _others(session: BaseSession) -> dict[str, int]:
    """The symbols but for how many rows there are."""
    return {name: size for name, size in session.symbols.items() if name != "Batch"}
