"""A function of a program as a pure function over jax arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules import RULES
from nest.backends.jax.rules.indexing import written
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, Node, Path, Value, path_text

__all__ = ["lower"]

_TYPED = frozenset({"iota", "full", "constant", "cast"})
_DTYPES: dict[str, Any] = {
    "f32": jnp.float32,
    "f16": jnp.float16,
    "bf16": jnp.bfloat16,
    "i32": jnp.int32,
    "i16": jnp.int16,
    "i8": jnp.int8,
    "u8": jnp.uint8,
    "bool": jnp.bool_,
}


def lower(function: Function, params: Mapping[str, Array], state: dict[str, Array], arguments: list[Array], path: Path = ()) -> tuple[Array, ...]:
    """The results of a function of the block at `path`; `state` is read, and its entries are replaced."""
    frame = _Frame(function, params, state, path)
    for value, array in zip(function.arguments, arguments, strict=True):
        frame.bind(value, array)
    for node in function.nodes:
        frame.step(node)
    return tuple(frame.values[id(v)] for v in function.results)


class _Frame:
    """One call: the values of its nodes, and what its symbols stand for."""

    def __init__(self, function: Function, params: Mapping[str, Array], state: dict[str, Array], path: Path) -> None:
        self.params = params
        self.state = state
        self.path = path
        self.values: dict[int, Any] = {}
        self.symbols: dict[str, Any] = {
            n: int(v) for n, v in function.block.generics.items() if isinstance(v, Dim) and v.value is not None
        }

    def bind(self, value: Value, array: Any) -> None:
        self.values[id(value)] = array
        for dim, size in zip(value.type.shape, array.shape, strict=True):
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
            return _DTYPES[x.value]
        return tuple(map(self._attr, x)) if isinstance(x, tuple) else x

    def _rule(self, node: Node) -> tuple[Any, ...]:
        rule = RULES.get(node.op)
        if rule is None:
            raise DefinitionError(f"The jax backend has no rule for the op '{node.op}'.")
        attrs = {n: self._attr(v) for n, v in node.attrs.items()}
        if node.op in _TYPED:
            attrs["dtype"] = _DTYPES[node.outputs[0].type.dtype.value]
        outputs = rule(*(self.operand(x) for x in node.inputs), **attrs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _name(self, node: Node) -> str:
        return path_text((*self.path, *node.attrs["path"]))

    def _param(self, node: Node) -> tuple[Any, ...]:
        return (self.params[self._name(node)].astype(_DTYPES[node.outputs[0].type.dtype.value]),)

    def _read(self, node: Node) -> tuple[Any, ...]:
        return (self.state[self._name(node)],)

    def _assign(self, node: Node) -> tuple[Any, ...]:
        self.state[self._name(node)] = self.operand(node.inputs[0])
        return ()

    def _update(self, node: Node) -> tuple[Any, ...]:
        value, pos = map(self.operand, node.inputs)
        name = self._name(node)
        self.state[name] = written(self.state[name], value, pos, node.attrs["axis"], node.attrs["batch_axis"])
        return (self.state[name],)

    def _call(self, node: Node) -> tuple[Any, ...]:
        path = (*self.path, *node.attrs["path"])
        return lower(node.attrs["function"], self.params, self.state, [self.operand(x) for x in node.inputs], path)

    def _while_loop(self, node: Node) -> tuple[Any, ...]:
        cond, body = node.attrs["cond"], node.attrs["body"]
        names = sorted(path_text((*self.path, *p)) for p in body.writes)

        def test(carry: Any) -> Array:
            trip, values, states = carry
            (go,) = lower(cond, self.params, {**self.state, **states}, list(values), self.path)
            return go & (trip < node.attrs["max_trips"])

        def advance(carry: Any) -> Any:
            trip, values, states = carry
            state = {**self.state, **states}
            values = lower(body, self.params, state, list(values), self.path)
            return trip + 1, tuple(values), {n: state[n] for n in names}

        start = jnp.int32(0), tuple(self.operand(x) for x in node.inputs), {n: self.state[n] for n in names}
        _, values, states = lax.while_loop(test, advance, start)
        self.state.update(states)
        return tuple(values)
