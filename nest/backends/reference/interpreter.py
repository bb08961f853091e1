"""Running a program node by node in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.backends.reference.rules import RULES
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, Node, Path, Value, path_text

__all__ = ["Interpreter"]

_TYPED = frozenset({"iota", "full", "constant", "cast"})


class Interpreter:
    """Evaluates functions of a program over numpy parameters.

    Args:
        params: definition path -> array.
        precision: `"f32"` to compute in the program's own types, `"f64"` to make every float a double.
    """

    def __init__(self, params: Mapping[str, np.ndarray[Any, Any]], precision: str = "f32") -> None:
        self.params = params
        self.precision = precision

    def dtype(self, dtype: DType) -> np.dtype[Any]:
        """The numpy type that a program's type is computed in."""
        if dtype.kind == "float":
            return np.dtype(np.float64 if self.precision == "f64" else _FLOATS[dtype.value])
        return np.dtype(_OTHERS[dtype.value])

    def run(
        self,
        function: Function,
        arguments: list[np.ndarray[Any, Any]],
        state: dict[str, np.ndarray[Any, Any]],
        *,
        path: Path = (),
    ) -> tuple[np.ndarray[Any, Any], ...]:
        """The results of a function of the block at `path`; `state` is read and written by definition path."""
        frame = _Frame(self, function, path, state)
        for value, array in zip(function.arguments, arguments, strict=True):
            frame.bind(value, array)
        for node in function.nodes:
            frame.step(node)
        return tuple(frame.values[id(v)] for v in function.results)


class _Frame:
    """One call: the values of its nodes, and what its symbols stand for."""

    def __init__(
        self, interpreter: Interpreter, function: Function, path: Path, state: dict[str, np.ndarray[Any, Any]]
    ) -> None:
        self.interpreter = interpreter
        self.path = path
        self.state = state
        self.values: dict[int, Any] = {}
        block = function.block
        self.symbols: dict[str, int] = {
            n: int(v) for n, v in block.generics.items() if isinstance(v, Dim) and v.value is not None
        }

    def bind(self, value: Value, array: Any) -> None:
        """Give a value its array, and its bare symbols their sizes."""
        self.values[id(value)] = array
        for dim, size in zip(value.type.shape, np.shape(array), strict=True):
            name = dim.as_symbol()
            if name is not None:
                self.symbols.setdefault(name, size)

    def step(self, node: Node) -> None:
        handler = getattr(self, f"_{node.op}", None)
        outputs = handler(node) if handler is not None else self._rule(node)
        for value, array in zip(node.outputs, outputs, strict=True):
            self.bind(value, array)

    def operand(self, x: Any) -> Any:
        if isinstance(x, Value):
            return self.values[id(x)]
        return x.evaluate(self.symbols) if isinstance(x, Dim) else x

    def _attr(self, x: Any) -> Any:
        if isinstance(x, Dim):
            return x.evaluate(self.symbols)
        if isinstance(x, DType):
            return self.interpreter.dtype(x)
        return tuple(map(self._attr, x)) if isinstance(x, tuple) else x

    def _rule(self, node: Node) -> tuple[Any, ...]:
        rule = RULES.get(node.op)
        if rule is None:
            raise DefinitionError(f"The reference backend has no rule for the op '{node.op}'.")
        attrs = {n: self._attr(v) for n, v in node.attrs.items()}
        if node.op in _TYPED:
            attrs["dtype"] = self.interpreter.dtype(node.outputs[0].type.dtype)
        outputs = rule(*(self.operand(x) for x in node.inputs), **attrs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    # -- what is not an op of its own ----------------------------------------------------------------------

    def _full_path(self, node: Node) -> str:
        return path_text((*self.path, *node.attrs["path"]))

    def _param(self, node: Node) -> tuple[Any, ...]:
        array = self.interpreter.params[self._full_path(node)]
        return (array.astype(self.interpreter.dtype(node.outputs[0].type.dtype), copy=False),)

    def _read(self, node: Node) -> tuple[Any, ...]:
        return (self.state[self._full_path(node)],)

    def _assign(self, node: Node) -> tuple[Any, ...]:
        name = self._full_path(node)
        self.state[name] = np.array(self.operand(node.inputs[0]), dtype=self.state[name].dtype)
        return ()

    def _update(self, node: Node) -> tuple[Any, ...]:
        value, pos = (self.operand(x) for x in node.inputs)
        state = self.state[self._full_path(node)]
        rows, slots = node.attrs["batch_axis"], node.attrs["axis"]
        positions = np.broadcast_to(np.asarray(pos), (state.shape[rows],))
        length = value.shape[slots]
        if positions.min() < 0 or positions.max() + length > state.shape[slots]:
            raise DefinitionError(
                f"The state '{self._full_path(node)}' has {state.shape[slots]} slots; "
                f"{length} were written at {positions.tolist()}."
            )
        for row, start in enumerate(positions):
            where: list[Any] = [slice(None)] * state.ndim
            where[rows], where[slots] = row, slice(start, start + length)
            source: list[Any] = [slice(None)] * state.ndim
            source[rows] = row
            state[tuple(where)] = value[tuple(source)]
        return (state,)

    def _call(self, node: Node) -> tuple[Any, ...]:
        arguments = [self.operand(x) for x in node.inputs]
        path = (*self.path, *node.attrs["path"])
        return self.interpreter.run(node.attrs["function"], arguments, self.state, path=path)

    def _while_loop(self, node: Node) -> tuple[Any, ...]:
        carry = tuple(self.operand(x) for x in node.inputs)
        run = self.interpreter.run
        for _ in range(node.attrs["max_trips"]):
            (go,) = run(node.attrs["cond"], list(carry), self.state, path=self.path)
            if not go:
                break
            carry = run(node.attrs["body"], list(carry), self.state, path=self.path)
        return carry


_FLOATS: dict[str, type[np.generic]] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.float32,
}
_OTHERS: dict[str, type[np.generic]] = {
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u8": np.uint8,
    "bool": np.bool_,
}
