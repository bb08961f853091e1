"""What `nest.load` returns on the reference backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from nest.backends.calls import EntryCall
from nest.backends.reference.interpreter import Interpreter
from nest.backends.session import (
    BaseSession,
    HoldsDefault,
    allocating,
    call_default,
    forget,
    session_symbols,
    take_rows,
    touched_states,
)
from nest.errors import CallError
from nest.ir.dtype import DType
from nest.ir.inventory import states
from nest.ir.program import Program

__all__ = ["ReferenceModel", "ReferenceSession", "build"]


class NumpyArrays:
    """See `nest.backends.calls.Arrays`."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def kind(self, x: Any) -> str:
        return {"f": "float", "i": "int", "u": "int", "b": "bool", "c": "complex"}.get(
            x.dtype.kind, str(x.dtype)
        )

    def is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def from_python(self, x: Any, kind: str) -> Any:
        # Tensors of other frameworks arrive here too, through their own conversion.
        array = np.asarray(x)
        if array.size == 0 and array.dtype.kind == "f" and kind == "int":
            array = array.astype(np.int32)
        return array

    def bounds(self, x: Any) -> tuple[int, int] | None:
        return None if x.size == 0 else (int(x.min()), int(x.max()))

    def native(self, x: Any, dtype: str) -> Any:
        return np.asarray(x, dtype=self.interpreter.dtype(DType.of(dtype)))

    def full(self, shape: Sequence[int], value: int, dtype: str) -> Any:
        return np.full(tuple(shape), value, dtype=self.interpreter.dtype(DType.of(dtype)))


class ReferenceModel(HoldsDefault):
    """A loaded model in numpy: the same entries and sessions as on every backend, slowly."""

    backend: ClassVar[str] = "reference"
    """The name of the backend."""

    def __init__(
        self, program: Program, interpreter: Interpreter, entry: Any, session: dict[str, int]
    ) -> None:
        self.program = program
        self.interpreter = interpreter
        self.entry = entry
        self._session_defaults = session

    def new_session(self, **symbols: int) -> ReferenceSession:
        """States of their own over these weights: `Batch` rows, caches of `Capacity` slots."""
        given = {**self._session_defaults, **symbols}
        return ReferenceSession(self, session_symbols(self.program, given))

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self._call(name, inputs, {})

    def _call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        function = self.program.entries.get(name)
        if function is not None and function.uses_state:
            return call_default(self, self.new_session, name, args, kwargs)
        call = EntryCall(self.program, name, NumpyArrays(self.interpreter))
        return _single(call, self.interpreter.run(call.function, call(args, kwargs, {}), {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "program" or name not in self.program.entries:
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        return lambda *args, **kwargs: self._call(name, args, kwargs)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.program.entries})

    def __deepcopy__(self, memo: dict[int, Any]) -> ReferenceModel:
        """Parameters of its own over the same program."""
        own = {path: array.copy() for path, array in self.interpreter.params.items()}
        interpreter = Interpreter(own, self.interpreter.precision)
        return ReferenceModel(self.program, interpreter, self.entry, dict(self._session_defaults))

    def __reduce__(self) -> Any:
        raise CallError(
            f"A model of the reference backend cannot be pickled; load {self.program.name} again where it is needed."
        )

    def __repr__(self) -> str:
        return f"<ReferenceModel {self.program.name} ({self.interpreter.precision})>"


class ReferenceSession(BaseSession):
    """A session of the reference backend; its states are a dict by definition path."""

    def __init__(self, model: ReferenceModel, symbols: Mapping[str, int]) -> None:
        super().__init__(model.program, symbols)
        self.model = model
        with allocating(self.program, self.symbols):
            self.state = {
                path: np.zeros(spec.bound(self.symbols), model.interpreter.dtype(DType.of(spec.dtype)))
                for path, spec in states(model.program).items()
            }

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        interpreter = self.model.interpreter
        call = EntryCall(self.program, name, NumpyArrays(interpreter))
        native = call(args, kwargs, self.symbols)
        used, written = touched_states(call.function)
        self._intact(used)
        with self._writing(name, written):
            results = interpreter.run(call.function, native, self.state)
        # A result must not change with the next call, so a view of a state is copied.
        return _single(call, tuple(r.copy() if self._is_state(r) else r for r in results))

    def _is_state(self, array: np.ndarray[Any, Any]) -> bool:
        return any(np.may_share_memory(array, state) for state in self.state.values())

    def numpy(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return value

    def _native(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array

    def _sibling(self, symbols: Mapping[str, int]) -> ReferenceSession:
        return ReferenceSession(self.model, symbols)

    def _live(self) -> dict[str, np.ndarray[Any, Any]]:
        return self.state

    def _put(self, values: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.state = {path: values[path].astype(array.dtype) for path, array in self.state.items()}

    def _forget(self, kept: np.ndarray[Any, Any]) -> None:
        forget(self.program, self.state, kept)

    def _take(self, source: ReferenceSession, rows: list[int], paths: Sequence[str]) -> None:
        take_rows(self.program, self.state, source.state, rows, paths)


def _single(call: EntryCall, results: tuple[Any, ...]) -> Any:
    return results[0] if call.function.signature.single else results


def build(
    program: Program,
    params: Mapping[str, np.ndarray[Any, Any]],
    *,
    precision: str = "f32",
    entry: Any = None,
    session: dict[str, int] | None = None,
) -> ReferenceModel:
    """The model of a program over these parameters; `precision="f64"` makes it the oracle."""
    if precision not in ("f32", "f64"):
        raise CallError(
            f"The reference backend computes in 'f32' or 'f64', and precision='{precision}' was asked for."
        )
    return ReferenceModel(program, Interpreter(params, precision), entry, session or {})
