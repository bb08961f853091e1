"""From a method of a block to a function of the program, traced once for each distinct block."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import CodeType
from typing import Any

from nest.errors import DefinitionError, NestError
from nest.ir.dim import Dim
from nest.ir.program import Function, Parameter, Path, Signature
from nest.ir.types import TensorType
from nest.layers._definitions import definition_of
from nest.layers._refs import BlockRef, Scope
from nest.layers._resolve import resolve_dtype, resolve_shape, spread
from nest.layers._trace import Trace, current_trace, fail, located, python_error
from nest.layers.annotations import MethodTypes, TensorAnnotation, method_types
from nest.layers.block import Block
from nest.layers.tensor import Tensor, as_tensor

__all__ = ["Ranks", "function_of", "ranks_of"]


Ranks = tuple[tuple[str, int], ...]


def function_of(
    block: Block, name: str, ranks: Ranks = (), place: Path = (), method: Callable[..., Any] | None = None
) -> Function:
    """The traced method `name` of `block`, where each `*S` of its annotations stands for `ranks` axes.

    Raises:
        DefinitionError: the method breaks a rule, or calls itself.
    """
    definition = definition_of(block)
    key = name if not ranks else f"{name}[{', '.join(f'*{s}={r}' for s, r in ranks)}]"
    known = definition.functions.get(key)
    if known is not None:
        if not known.results:
            raise fail(f"{definition.name}.{name} calls itself; a program has no recursion.")
        return known
    method = method or getattr(type(block), name)
    types = method_types(method)
    where = f"{_short(method.__code__)}, {type(block).__name__}.{name}"
    signature, origins = _signature(block, _spread(types, dict(ranks)), where)
    doc = inspect.getdoc(method) if method.__doc__ else None
    function = Function(name, definition, signature, method.__code__, doc)
    definition.functions[key] = function
    try:
        _trace(block, function, method, origins, place)
    except BaseException:
        del definition.functions[key]
        raise
    return function


def _short(code: CodeType) -> str:
    return f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_firstlineno}"


def _spread(types: MethodTypes, ranks: dict[str, int]) -> MethodTypes:
    if not ranks:
        return types

    def one(annotation: TensorAnnotation | None) -> TensorAnnotation | None:
        return annotation and TensorAnnotation(annotation.dtype, tuple(spread(annotation.axes, ranks)))

    parameters = tuple(one(p) for p in types.parameters)
    results = tuple(r for r in map(one, types.results or ()) if r is not None)
    return replace(types, parameters=parameters, results=results)


def ranks_of(types: MethodTypes, given: list[TensorType | None]) -> Ranks:
    """How many axes each `*S` of a method stands for, from the ranks of the arguments."""
    ranks: dict[str, int] = {}
    for annotation, got in zip(types.parameters, given, strict=True):
        stars = [a for a in annotation.axes if a[0] == "*"] if annotation else []
        if len(stars) == 1 and got is not None and annotation is not None:
            ranks.setdefault(stars[0][1:], max(0, got.rank - len(annotation.axes) + 1))
    return tuple(sorted(ranks.items()))


def _signature(block: Block, types: MethodTypes, where: str) -> tuple[Signature, dict[str, str]]:
    if types.results is None:
        raise DefinitionError(
            f"{where}: its result has no tensor annotation, which a function of the program needs, "
            f'as in `-> Float[Tensor, "B N"]`.'
        )
    free: dict[str, Dim] = {}
    origins: dict[str, str] = {}
    parameters = []
    for name, annotation, fill in zip(types.names, types.parameters, types.fills, strict=True):
        if annotation is None:
            raise DefinitionError(f"{where}: argument '{name}' has no tensor annotation.")
        before = set(free)
        type_ = _type(block, annotation, free, f"{where}, argument '{name}'")
        for symbol in free.keys() - before:
            origins[symbol] = _origin(type_, symbol, name, where.rpartition(", ")[2])
        parameters.append((name, type_, fill))
    bindable = {n for _, t, f in parameters if f is None for d in t.shape if (n := d.as_symbol()) is not None}
    for symbol in free:
        if symbol not in bindable:
            raise DefinitionError(
                f"{where}: the symbol '{symbol}' stands only inside an expression, so no call can bind it. Give it an "
                f"axis of its own in some argument."
            )
    fixed = dict(free)
    results = []
    for annotation in types.results or ():
        type_ = _type(block, annotation, free, f"{where}, result")
        for symbol in free.keys() - fixed.keys():
            raise DefinitionError(
                f"{where}: the result {type_} has the symbol '{symbol}', which no argument binds and which is no "
                f"generic of {type(block).__name__}."
            )
        results.append(type_)
    filled = tuple(Parameter(n, t, _fill(fill, free, where)) for n, t, fill in parameters)
    return Signature(filled, tuple(results), tuple(free), types.single), origins


def _fill(fill: str | None, free: dict[str, Dim], where: str) -> Dim | None:
    if fill is None:
        return None
    if fill.isdigit():
        return Dim.constant(int(fill))
    if fill not in free:
        raise DefinitionError(
            f"{where}: Fill({fill!r}) names no symbol of the method; those are {', '.join(free) or 'none'}."
        )
    return free[fill]


def _type(block: Block, annotation: TensorAnnotation, free: dict[str, Dim], where: str) -> TensorType:
    dtype = resolve_dtype(block, annotation, where)
    return TensorType(resolve_shape(block, annotation.axes, free, where), dtype)


def _origin(type_: TensorType, symbol: str, argument: str, where: str) -> str:
    for axis, dim in enumerate(type_.shape):
        if symbol in dim.symbols():
            return f"axis {axis} of argument '{argument}' of {where}"
    return f"argument '{argument}' of {where}"


def _trace(block: Block, function: Function, method: Any, origins: dict[str, str], place: Path) -> None:
    trace = Trace(block, function, method.__code__, place)
    trace.origins = origins
    own = Scope({}, {})
    ref = BlockRef(trace, block, (), own)
    token = current_trace.set(trace)
    try:
        outcome = method(ref, *(Tensor(v) for v in function.arguments))
        function.results = _results(trace, function, outcome)
    except DefinitionError as error:
        raise located(error) from None
    except NestError:
        raise
    except Exception as error:
        raise python_error(
            error, function.code.co_filename, f"{type(block).__name__}.{function.name}"
        ) from error
    finally:
        current_trace.reset(token)


def _results(trace: Trace, function: Function, outcome: Any) -> tuple[Any, ...]:
    expected = function.signature.results
    got = (outcome,) if function.signature.single else outcome
    owner = f"{function.block.name}.{function.name}"
    if not isinstance(got, tuple) or len(got) != len(expected):
        came = f"{len(got)} results" if isinstance(got, tuple) else type(outcome).__name__
        raise fail(f"{owner} is annotated with {len(expected)} results, and returned {came}.")
    values = []
    for position, (want, value) in enumerate(zip(expected, got, strict=True)):
        if value is None:
            raise fail(
                f"{owner} returned None; its annotation promises {want}.", hint="Is a `return` missing?"
            )
        if not isinstance(value, Tensor) and not hasattr(value, "_read_state"):
            raise fail(f"{owner} returned {type(value).__name__}; its annotation promises {want}.")
        tensor = as_tensor(value, owner, f"result {position}")
        if not trace.same_type(want, tensor.type):
            which = "" if len(expected) == 1 else f" {position}"
            raise fail(
                f"Result{which} does not match its annotation.",
                ("annotated", want),
                ("returned", tensor.type),
                hint=_mismatch(trace, want, tensor.type),
            )
        values.append(tensor.value())
        if tensor._state is not None:
            function.views[position] = tensor._state[0]
    return tuple(values)


def _mismatch(trace: Trace, want: TensorType, got: TensorType) -> str:
    from nest.layers._calls import coincidence

    if not want.dtype.same(got.dtype):
        return f"The element types differ: {want.dtype} and {got.dtype}; cast(x, ...) converts."
    if want.rank != got.rank:
        return f"The ranks differ: {want.rank} and {got.rank}."
    for axis, (a, b) in enumerate(zip(want.shape, got.shape, strict=True)):
        if not trace.same(a, b):
            return f"Axis {axis}: {a} and {b}. {coincidence(a, b)}".strip()
    return ""
