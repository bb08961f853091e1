"""Calls between functions of the program, typed by the callee's signature alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nest._suggest import aside
from nest.ir.dim import Dim
from nest.ir.program import Function, Operand, Parameter, Path, Value, path_text
from nest.ir.types import TensorType
from nest.layers._trace import Trace, current_trace, fail
from nest.layers.annotations import MethodTypes, TensorAnnotation, method_types
from nest.layers.tensor import Tensor, as_tensor

if TYPE_CHECKING:
    from nest.layers._refs import Scope
    from nest.layers.block import Block

__all__ = ["call", "unify"]


def call(
    trace: Trace,
    block: Block,
    path: Path,
    scope: Scope,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Tensor | tuple[Tensor, ...]:
    """Emit a call of `block.name`; its results, typed in the caller's symbols.

    Raises:
        DefinitionError: an argument's type does not fit the signature, or a rule of the callee cannot hold.
    """
    from nest.layers._functions import function_of, ranks_of

    label = f"{type(block).__name__}.{name}"
    types = method_types(getattr(type(block), name))
    given = _arguments(types, label, args, kwargs)
    tensors = [as_tensor(v, label, n) if _is_tensor(t, v) else None for n, t, v in given]
    ranks = ranks_of(types, [t.type if t is not None else None for t in tensors])
    callee = function_of(block, name, ranks, (*trace.place, *path))
    bound = unify(trace, callee, label, [t.type if t is not None else None for t in tensors], scope)
    _propagate_rules(trace, callee, label, bound)
    operands = [
        t.value() if t is not None else _filled(p, v, bound)
        for t, p, (_, _, v) in zip(tensors, callee.signature.parameters, given, strict=True)
    ]
    results = [t.substitute(bound, scope.dtypes) for t in callee.signature.results]
    _refuse_written_views(callee, path, label, tensors)
    _mark_states(trace, callee, path)
    attrs = {"path": path, "function": callee, "symbols": bound, "dtypes": dict(scope.dtypes)}
    outputs = trace.emit("call", tuple(operands), attrs, *results)
    answers = tuple(_answer(trace, callee, path, position, value) for position, value in enumerate(outputs))
    return answers[0] if callee.signature.single else answers


def _arguments(
    types: MethodTypes, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, TensorAnnotation | None, Any]]:
    """Each parameter with its annotation and what was given for it; one with a fill may be left out."""
    names = types.names
    if len(args) > len(names):
        raise fail(f"{label} takes {len(names)} arguments ({', '.join(names)}), and {len(args)} were given.")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names or name in given:
            problem = "given twice" if name in given else f"unknown{aside(name, names)}"
            raise fail(f"{label}: argument '{name}' is {problem}; it takes {', '.join(names)}.")
        given[name] = value
    fills = dict(zip(names, types.fills, strict=True))
    if missing := [n for n in names if n not in given and fills[n] is None]:
        raise fail(f"{label} needs {', '.join(missing)}; it takes {', '.join(names)}.")
    return [(n, t, given.get(n, _Omitted)) for n, t in zip(names, types.parameters, strict=True)]


class _Omitted:
    """Stands for an argument that its fill replaces."""


def _is_tensor(annotation: TensorAnnotation | None, value: Any) -> bool:
    """A number given for an integer tensor, and an omitted argument, stand for a tensor filled with it."""
    if value is _Omitted:
        return False
    return not (isinstance(value, Dim | int) and annotation is not None and annotation.dtype == "i32")


def _filled(parameter: Parameter, value: Any, bound: dict[str, Dim]) -> Operand:
    from nest.layers.ops import full

    if value is _Omitted:
        value = parameter.fill

    shape = [d.substitute(bound) for d in parameter.type.shape]
    return full(shape, Dim.of(value).substitute(bound), parameter.type.dtype).value()


def unify(
    trace: Trace, callee: Function, label: str, types: list[TensorType | None], scope: Scope
) -> dict[str, Dim]:
    """Bind the callee's symbols from the argument types; its block's generics are already in `scope`."""
    bound: dict[str, Dim] = dict(scope.dims)
    free = set(callee.signature.generics)
    for parameter, got in zip(callee.signature.parameters, types, strict=True):
        if got is None:
            continue
        expected = parameter.type
        if len(expected.shape) != got.rank:
            raise fail(
                f"{label} takes a tensor of rank {expected.rank} for '{parameter.name}', and got rank {got.rank}.",
                ("expected", expected),
                ("got", got),
            )
        for pattern, dim in zip(expected.shape, got.shape, strict=True):
            name = pattern.as_symbol()
            if name in free and name not in bound:
                bound[name] = dim
    for parameter, got in zip(callee.signature.parameters, types, strict=True):
        if got is not None:
            _check(trace, parameter, got, label, bound, scope)
    return bound


def _check(
    trace: Trace, parameter: Parameter, got: TensorType, label: str, bound: dict[str, Dim], scope: Scope
) -> None:
    expected = parameter.type.substitute(bound, scope.dtypes)
    if not expected.dtype.same(got.dtype):
        raise fail(
            f"{label} takes {expected.dtype} for '{parameter.name}', and got {got.dtype}.",
            ("expected", expected),
            ("got", got),
            hint="cast(x, dtype) converts; nothing is converted by itself.",
        )
    for axis, (want, have) in enumerate(zip(expected.shape, got.shape, strict=True)):
        if not trace.same(want, have):
            raise fail(
                f"{label}: axis {axis} of '{parameter.name}' must be {want}, and is {have}.",
                ("expected", expected),
                ("got", got),
                hint=coincidence(want, have),
            )


def coincidence(a: Dim, b: Dim) -> str:
    """A hint where two dims are equal by value and not by definition."""
    if a.value is None or a.value != b.value:
        return ""
    return f"Both are {a.value} here, by coincidence: if they must be equal, state {_requirement(a, b)} in build."


def _requirement(a: Dim, b: Dim) -> str:
    """The line to write: the generics are attributes of the block."""
    trace = current_trace.get()
    own = trace.block._generics if trace is not None else {}
    left, right = (
        re.sub(r"[A-Za-z_]\w*", lambda m: f"self.{m[0]}" if m[0] in own else m[0], str(d)) for d in (a, b)
    )
    return f"self.require({left} == {right})"


def _propagate_rules(trace: Trace, callee: Function, label: str, bound: dict[str, Dim]) -> None:
    """A rule of the callee is a rule of the caller, unless it is already known to hold."""
    for rule in callee.signature.rules:
        here = rule.substitute(bound)
        holds = here.holds()
        if holds is False:
            raise fail(f"{label} requires {rule}, which is false here: {here.values_text()}.")
        known = {str(r) for r in trace.function.signature.rules}
        if holds is None and str(here) not in known:
            trace.function.signature.rules.append(here)


def _answer(trace: Trace, callee: Function, path: Path, position: int, value: Value) -> Tensor:
    """A result of a call; where it is a view of a state, the next write makes it stale here too."""
    view = callee.views.get(position)
    if view is None:
        return Tensor(value)
    full = (*path, *view)
    return Tensor(value, (full, trace.versions.get(full, 0)))


def _refuse_written_views(callee: Function, path: Path, label: str, tensors: list[Tensor | None]) -> None:
    written = {(*path, *relative) for relative in callee.writes}
    for tensor in tensors:
        if tensor is not None and tensor._state is not None and tensor._state[0] in written:
            raise fail(
                f"{label} is given a view of the state 'self.{path_text(tensor._state[0])}', and writes that state.",
                ("view", tensor.type),
                hint="Compute with the view first, or pass what was computed from it.",
            )


def _mark_states(trace: Trace, callee: Function, path: Path) -> None:
    for relative in callee.reads:
        trace.function.reads.add((*path, *relative))
    for relative in callee.writes:
        trace.write((*path, *relative))
