"""Sessions on ONNX Runtime: states in memory that every call reads and writes where it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from nest.backends.onnx.arrays import empty_results
from nest.backends.onnx.dtypes import numpy_dtype
from nest.backends.onnx.options import message
from nest.backends.onnx.ports import StatePort
from nest.backends.onnx.runtime import Prepared, Runtime
from nest.backends.session import BaseSession, forget, take_rows
from nest.errors import CallError
from nest.ir.inventory import states
from nest.ir.types import StateSpec

__all__ = ["OnnxSession", "call_stateless"]

Array = npt.NDArray[Any]

# Copying so much takes about as long as a call with its arguments and results; a Whisper of the base size has 11 MB.
# Of a row: what a step computes grows with the rows as well.
_LOOP_BYTES = 16 << 20


class _Memory:
    """One state's memory; a second of the same size where an entry reads the old content while it writes the new."""

    def __init__(self, spec: StateSpec, symbols: Mapping[str, int]) -> None:
        self.shape = spec.bound(symbols)
        self.dtype = numpy_dtype(spec.dtype)
        self.array, self.current = self._zeros()
        self._other: tuple[Array, ort.OrtValue] | None = None

    def _zeros(self) -> tuple[Array, ort.OrtValue]:
        array = np.zeros(self.shape, self.dtype)
        return array, ort.OrtValue.ortvalue_from_numpy(array)

    @property
    def spare(self) -> ort.OrtValue:
        if self._other is None:
            self._other = self._zeros()
        return self._other[1]

    def swap(self) -> None:
        """What was written to the spare becomes the state."""
        if self._other is not None:
            (self.array, self.current), self._other = self._other, (self.array, self.current)


class _Binding:
    """One entry bound to the memory of one session."""

    def __init__(self, prepared: Prepared, memory: Mapping[str, _Memory]) -> None:
        self.prepared = prepared
        self.memory = memory
        self.binding = prepared.session.io_binding()
        self._bound: dict[str, ort.OrtValue] = {}

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        for name, array in zip(self.prepared.graph.arguments, arguments, strict=True):
            self.binding.bind_cpu_input(name, array)
        for name in self.prepared.graph.results:
            # Anew for each call: the runtime would write into the memory of the last one's results.
            self.binding.bind_output(name, "cpu")
        for port in self.prepared.graph.states:
            self._bind(port)
        self.prepared.session.run_with_iobinding(self.binding)
        for port in self.prepared.graph.states:
            if port.output is not None and not port.in_place:
                self.memory[port.path].swap()
        # Outputs come in the order in which they were bound first: results, then states.
        outputs = self.binding.get_outputs()
        return [outputs[i].numpy() for i in range(len(self.prepared.graph.results))]

    def _bind(self, port: StatePort) -> None:
        memory = self.memory[port.path]
        # Binding costs more than looking: only what moved since the last call is bound again.
        if self._bound.get(port.path) is memory.current:
            return
        if port.input is not None:
            self.binding.bind_ortvalue_input(port.input, memory.current)
        if port.output is not None:
            target = memory.current if port.in_place else memory.spare
            self.binding.bind_ortvalue_output(port.output, target)
        self._bound[port.path] = memory.current


def call_stateless(prepared: Prepared, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an entry that uses no state."""
    arguments = prepared.check(args, kwargs, {})
    if (nothing := empty_results(prepared.check.function, arguments)) is not None:
        return _single(prepared, nothing)
    feed = dict(zip(prepared.graph.arguments, arguments, strict=True))
    try:
        results = prepared.session.run(list(prepared.graph.results), feed)
    except Exception as error:
        raise _failed(prepared, error) from error
    return _single(prepared, results)


def _single(prepared: Prepared, results: Sequence[Any]) -> Any:
    return results[0] if prepared.check.function.signature.single else tuple(results)


def _failed(prepared: Prepared, error: Exception) -> CallError:
    return CallError(f"{prepared.label} failed in ONNX Runtime: {message(error)}")


class OnnxSession(BaseSession):
    """States of one caller over a model's weights; entries take and give numpy arrays.

    A call that fails after it has begun to write leaves the states half-written: the session then refuses further
    calls.
    """

    def __init__(self, runtime: Runtime, symbols: Mapping[str, int]) -> None:
        super().__init__(runtime.program, symbols)
        self.runtime = runtime
        self._memory = {p: _Memory(s, self.symbols) for p, s in states(runtime.program).items()}
        self._bindings: dict[str, _Binding] = {}

    @property
    def whole_decodes(self) -> bool:
        """In a `Loop` the runtime copies the caches for every token, which small ones alone are worth.

        By the plan `fast` it copies the slots that were written, on average half of them.
        """
        size = sum(self._memory[path].array.nbytes for path in self._slotted())
        copied = size / 2 if self.runtime.plan.name == "fast" else size
        return copied <= _LOOP_BYTES * self.symbols["Batch"]

    @property
    def state(self) -> dict[str, Array]:
        """A copy of every state, by definition path."""
        return {path: memory.array.copy() for path, memory in self._memory.items()}

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        prepared = self.runtime.entry(name)
        arguments = prepared.check(args, kwargs, self.symbols)
        self._intact([port.path for port in prepared.graph.states])
        written = [port.path for port in prepared.graph.states if port.output is not None]
        bound = self._bindings.get(name)
        if bound is None:
            bound = self._bindings[name] = _Binding(prepared, self._memory)
        with self._writing(name, written):
            try:
                results = bound.run(arguments)
            except Exception as error:
                raise _failed(prepared, error) from error
        return _single(prepared, results)

    def numpy(self, value: Array) -> Array:
        return value

    def _native(self, array: Array) -> Array:
        return np.ascontiguousarray(array)

    def _sibling(self, symbols: Mapping[str, int]) -> OnnxSession:
        return OnnxSession(self.runtime, symbols)

    def _live(self) -> dict[str, Array]:
        return {path: memory.array for path, memory in self._memory.items()}

    def _put(self, values: Mapping[str, Array]) -> None:
        for path, array in self._live().items():
            array[...] = values[path]

    def _forget(self, kept: Array) -> None:
        forget(self.program, self._live(), kept)

    def _take(self, source: OnnxSession, rows: list[int], paths: Sequence[str]) -> None:
        take_rows(self.program, self._live(), source._live(), rows, paths)
