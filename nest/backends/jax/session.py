"""Sessions on jax: states are given to each call and replaced by what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nest.backends.calls import EntryCall
from nest.backends.jax.arrays import JaxArrays, on_host
from nest.backends.jax.buckets import Padding
from nest.backends.jax.dtypes import jax_dtype
from nest.backends.jax.engine import Engine, States
from nest.backends.jax.parameters import put
from nest.backends.jax.placement import Placement
from nest.backends.jax.session_states import taken, zeroed
from nest.backends.session import BaseSession, allocating
from nest.errors import CallError
from nest.ir.dim import Dim
from nest.ir.inventory import states
from nest.ir.program import Program, Signature

__all__ = ["Checked", "JaxSession", "new_states"]

Params = Callable[[], Mapping[str, Array]]


class Checked:
    """The checks and the padding of a program's entries, made once for each."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arrays = JaxArrays()
        self._known: dict[str, tuple[EntryCall, Padding]] = {}

    def __call__(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], session: Mapping[str, int]
    ) -> list[Any]:
        """Native arguments in order, padded where the entry admits it; see `EntryCall`."""
        call, _ = self._of(name)
        return call(args, kwargs, session)

    def padded(self, name: str, arguments: Sequence[Any], session: Mapping[str, int]) -> list[Any]:
        """Arguments with prompts as long as a bucket."""
        return self._of(name)[1](arguments, session)

    def signature(self, name: str) -> Signature:
        """An entry's signature; raises CallError where there is none of that name."""
        return self._of(name)[0].function.signature

    def _of(self, name: str) -> tuple[EntryCall, Padding]:
        known = self._known.get(name)
        if known is None:
            call = EntryCall(self.program, name, self.arrays)
            generics = {n: v.value for n, v in self.program.root.generics.items() if isinstance(v, Dim)}
            padding = Padding(call.function, {n: v for n, v in generics.items() if v is not None})
            known = self._known[name] = call, padding
        return known


def new_states(program: Program, symbols: Mapping[str, int], place: Placement) -> States:
    """The states of a session by definition path, all zero."""
    made = {}
    with allocating(program, symbols):
        for path, spec in states(program).items():
            shape = spec.bound(symbols)
            made[path] = jnp.zeros(shape, jax_dtype(spec.dtype), device=place.state(path, shape))
    return made


class JaxSession(BaseSession):
    """States of one caller; a call donates the buffers that it writes, so that they are updated in place.

    Args:
        program: whose entries.
        symbols: `Batch` and `Capacity`.
        engine: what computes.
        checked: the entries' checks.
        params: gives the parameters by definition path, at each call.
        place: where the states are.
    """

    def __init__(
        self,
        program: Program,
        symbols: Mapping[str, int],
        *,
        engine: Engine,
        checked: Checked,
        params: Params,
        place: Placement,
    ) -> None:
        super().__init__(program, symbols)
        self._engine = engine
        self._checked = checked
        self._params = params
        self._place = place
        self._failure: str | None = None
        self._states = new_states(program, symbols, place) if program.root.has_state else {}

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        native = self._checked(name, args, kwargs, self.symbols)
        native = self._checked.padded(name, native, self.symbols)
        entry = self._engine.compiled(name)
        self._intact((*entry.kept, *entry.written))
        try:
            results, written = self._engine(name, self._params(), self._states, native)
        except BaseException as error:
            self._failure = f"a call of '{name}' failed after they were given to it ({_short(error)})"
            raise
        self._states.update(written)
        return results[0] if self.program.entries[name].signature.single else results

    @property
    def broken(self) -> bool:
        return any(array.is_deleted() for array in self._states.values())

    def _intact(self, paths: Sequence[str] | None = None) -> None:
        """Refuse to go on with states whose buffers went into a call that failed."""
        if any(self._states[n].is_deleted() for n in (self._states if paths is None else paths)):
            why = self._failure or "a call was interrupted after they were given to it"
            raise CallError(
                f"The states of this session of {self.program.name} are lost: {why}. Take a new session: "
                f"model.new_session(Batch={self.symbols['Batch']})."
            )

    @property
    def state(self) -> States:
        """A copy of the states by definition path; setting it puts copies in their place.

        Raises:
            CallError: when set, a path is missing or unknown, or a shape or type differs.
        """
        return {path: jnp.copy(array) for path, array in self._states.items()}

    @state.setter
    def state(self, given: Mapping[str, Any]) -> None:
        faults = [f"'{n}' is missing" for n in self._states if n not in given]
        faults += [f"'{n}' is no state" for n in given if n not in self._states]
        faults += [
            f"'{n}' is {tuple(given[n].shape)} {given[n].dtype}, not {a.shape} {a.dtype}"
            for n, a in self._states.items()
            if n in given and (tuple(given[n].shape), given[n].dtype) != (a.shape, a.dtype)
        ]
        if faults:
            raise CallError(
                f"These are not the states of a session of {self.program.name}: {'; '.join(faults)}."
            )
        self._states = {n: jnp.array(given[n], copy=True) for n in self._states}

    def _settled(self, result: Any) -> Any:
        return jax.block_until_ready(result)  # type: ignore[no-untyped-call]

    def numpy(self, value: Array) -> np.ndarray[Any, Any]:
        return on_host(value)

    def _native(self, array: np.ndarray[Any, Any]) -> Array:
        placed: Array = jax.device_put(array, self._place.everywhere)
        return placed

    def _sibling(self, symbols: Mapping[str, int]) -> JaxSession:
        return JaxSession(
            self.program,
            symbols,
            engine=self._engine,
            checked=self._checked,
            params=self._params,
            place=self._place,
        )

    def _live(self) -> States:
        return self._states

    def _put(self, values: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._states = {
            path: put(values[path], array.dtype, self._place.state(path, array.shape))
            for path, array in self._states.items()
        }

    def _forget(self, kept: np.ndarray[Any, Any]) -> None:
        self._states.update(zeroed(self.program, self._states, kept, self._slotted()))

    def _take(self, source: JaxSession, rows: list[int], paths: Sequence[str]) -> None:
        self._states.update(taken(self.program, source._states, rows, paths))


def _short(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
