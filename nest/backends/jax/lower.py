"""A function of a program as a pure function over jax arrays, for jax to trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.dtypes import jax_dtype
from nest.backends.jax.rules import RULES
from nest.backends.jax.rules.indexing import write_slots
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, Node, Path, Value, path_text

__all__ = ["lower"]

_TYPED = frozenset({"iota", "full", "constant", "cast"})


def lower(
    function: Function,
    params: Mapping[str, Array],
    states: dict[str, Array],
    arguments: Sequence[Any],
    path: Path = (),
) -> tuple[Array, ...]:
    """The results of a function of the block at `path`.

    Args:
        function: what to compute.
        params: parameters by definition path, in any float type; each is used in the program's.
        states: states by definition path; the written ones are replaced in this dict, never in their buffers.
        arguments: arrays in the order of the signature.
        path: the block's.
    """
    frame = _Frame(function, params, states, path)
    for value, array in zip(function.arguments, arguments, strict=True):
        frame.bind(value, array)
    for node in function.nodes:
        frame.step(node)
    return tuple(frame.values[id(v)] for v in function.results)


class _Frame:
    """One call: the values of its nodes, and what its symbols stand for."""

    def __init__(
        self, function: Function, params: Mapping[str, Array], states: dict[str, Array], path: Path
    ) -> None:
        self.params = params
        self.states = states
        self.path = path
        self.values: dict[int, Any] = {}
        # Under `jax.export` a symbol may be a size that is not known yet.
        self.symbols: dict[str, Any] = {
            n: v.value
            for n, v in function.block.generics.items()
            if isinstance(v, Dim) and v.value is not None
        }

    def bind(self, value: Value, array: Any) -> None:
        """Give a value its array, and its bare symbols their sizes."""
        self.values[id(value)] = array
        for dim, size in zip(value.type.shape, array.shape, strict=True):
            name = dim.as_symbol()
            if name is not None:
                self.symbols.setdefault(name, size)

    def step(self, node: Node) -> None:
        outputs = _OWN.get(node.op, _rule)(self, node)
        for value, array in zip(node.outputs, outputs, strict=True):
            self.bind(value, array)

    def operand(self, x: Any) -> Any:
        if isinstance(x, Value):
            return self.values[id(x)]
        return x.evaluate(self.symbols) if isinstance(x, Dim) else x

    def operands(self, node: Node) -> list[Any]:
        return [self.operand(x) for x in node.inputs]

    def attr(self, x: Any) -> Any:
        if isinstance(x, Dim):
            return x.evaluate(self.symbols)
        if isinstance(x, DType):
            return jax_dtype(x.value)
        return tuple(map(self.attr, x)) if isinstance(x, tuple) else x

    def name(self, node: Node) -> str:
        """The full path of what a node refers to."""
        return path_text((*self.path, *node.attrs["path"]))


Outputs = tuple[Any, ...]


def _rule(frame: _Frame, node: Node) -> Outputs:
    rule = RULES.get(node.op)
    if rule is None:
        raise DefinitionError(f"The jax backend has no rule for the op '{node.op}'.")
    attrs = {n: frame.attr(v) for n, v in node.attrs.items()}
    if node.op in _TYPED:
        attrs["dtype"] = jax_dtype(node.outputs[0].type.dtype.value)
    outputs = rule(*frame.operands(node), **attrs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _param(frame: _Frame, node: Node) -> Outputs:
    return (frame.params[frame.name(node)].astype(jax_dtype(node.outputs[0].type.dtype.value)),)


def _read(frame: _Frame, node: Node) -> Outputs:
    return (frame.states[frame.name(node)],)


def _assign(frame: _Frame, node: Node) -> Outputs:
    (frame.states[frame.name(node)],) = frame.operands(node)
    return ()


def _update(frame: _Frame, node: Node) -> Outputs:
    value, pos = frame.operands(node)
    name, axis, rows = frame.name(node), node.attrs["axis"], node.attrs["batch_axis"]
    frame.states[name] = write_slots(frame.states[name], value, pos, axis, rows)
    return (frame.states[name],)


def _call(frame: _Frame, node: Node) -> Outputs:
    function, path = node.attrs["function"], node.attrs["path"]
    with jax.named_scope(path_text((*path, function.name))):
        return lower(function, frame.params, frame.states, frame.operands(node), (*frame.path, *path))


def _while_loop(frame: _Frame, node: Node) -> Outputs:
    """States that the body writes are carried beside the carry, and a count of the trips."""
    cond, body, limit = node.attrs["cond"], node.attrs["body"], node.attrs["max_trips"]
    written = sorted(path_text((*frame.path, *p)) for p in body.writes)

    def test(loop: Any) -> Array:
        trip, carry, states = loop
        (go,) = lower(cond, frame.params, {**frame.states, **states}, carry, frame.path)
        more: Array = go & (trip < limit)
        return more

    def advance(loop: Any) -> Any:
        trip, carry, states = loop
        after = {**frame.states, **states}
        carry = lower(body, frame.params, after, carry, frame.path)
        return trip + 1, carry, {n: after[n] for n in written}

    start = jnp.int32(0), tuple(frame.operands(node)), {n: frame.states[n] for n in written}
    _, carry, states = lax.while_loop(test, advance, start)
    frame.states.update(states)
    return tuple(carry)


_OWN: dict[str, Callable[[_Frame, Node], Outputs]] = {
    "param": _param,
    "read": _read,
    "assign": _assign,
    "update": _update,
    "call": _call,
    "while_loop": _while_loop,
}
