"""Bindings against a checkpoint: every parameter has its tensors and every tensor its use, or one error."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from nest._suggest import nearest
from nest.errors import BindingError
from nest.ir.parammap import Expr, ParamMap, Source, TensorSpec
from nest.ir.types import ParamSpec
from nest.registry.bindings import Bindings, Rule
from nest.weights.checkpoint import Checkpoint
from nest.weights.evaluate import evaluate

__all__ = ["bind", "resolve"]

_SUGGESTIONS = 20
"""Nearest names are looked for in this many faults; after that the list itself shows the pattern."""


def bind(
    params: Mapping[str, ParamSpec],
    bindings: Bindings,
    checkpoint: Checkpoint,
    *,
    source: str,
    generics: Mapping[str, int | str] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """The array of every parameter, by definition path, in the order of `params`.

    Arrays are views of the mapped files in their stored float width; only concat, cast and zeros allocate.

    Args:
        params: what the definition needs.
        bindings: which tensors each parameter is made of.
        checkpoint: the stored tensors.
        source: names the entry in errors.
        generics: values for sizes in the bindings that are expressions.

    Raises:
        BindingError: a parameter without a tensor, a tensor that nothing uses, a wrong shape or kind of
            dtype, a tied tensor that differs: all of them, by path.
    """
    types = checkpoint.specs
    expressions = resolve(params, bindings, types, source=source, generics=generics)
    stored_as = _stored_names(bindings, types)
    faults = [
        f"'{alias}' repeats '{name}' (a declared tie), and their values differ"
        for alias, name in bindings.ties.items()
        if alias in checkpoint and name in checkpoint and not _equal(checkpoint, alias, name)
    ]
    if faults:
        raise _error(source, faults)
    types = types | {name: types[stored] for name, stored in stored_as.items()}

    def read(name: str) -> npt.NDArray[Any]:
        return checkpoint[stored_as.get(name, name)].array()

    return {path: evaluate(expression, types, read) for path, expression in expressions.items()}


def resolve(
    params: Mapping[str, ParamSpec],
    bindings: Bindings,
    types: Mapping[str, TensorSpec],
    *,
    source: str,
    generics: Mapping[str, int | str] | None = None,
) -> dict[str, Expr]:
    """The expression of every parameter over a checkpoint's tensors; needs their names, shapes and dtypes.

    Raises:
        BindingError: as `bind`, values of ties aside.
    """
    expressions, faults = _expand(params, bindings, generics or {})
    stored_as = _stored_names(bindings, types)
    types = {**types, **{name: types[stored] for name, stored in stored_as.items()}}
    used: set[str] = set()
    for path, expression in expressions.items():
        faults += _faults_of(params[path], expression, types, hint=len(faults) < _SUGGESTIONS)
        used.update(expression.sources())
    if not faults:
        faults += _not_invertible(expressions, types)
    for name in types:
        tied = name in bindings.ties and bindings.ties[name] in used
        if name not in used and not tied and not bindings.ignores(name):
            faults.append(f"tensor '{name}' ({types[name]}): nothing uses it")
    if faults:
        raise _error(source, faults)
    return expressions


def _not_invertible(expressions: Mapping[str, Expr], types: Mapping[str, TensorSpec]) -> list[str]:
    """Bindings that leave part of a tensor, or lose values: such a model could not be saved."""
    computed = {path: one for path, one in expressions.items() if not isinstance(one, Source)}
    try:
        ParamMap(computed).inverse(types)
    except BindingError as error:
        return [str(error)]
    return []


def _error(source: str, faults: list[str]) -> BindingError:
    count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    listed = "".join(f"\n  {fault}" for fault in faults)
    return BindingError(
        f"{source}: the checkpoint and the definition do not match one to one ({count}). A parameter without "
        f"its tensor or a tensor that nothing uses means wrong results, so nothing was loaded.{listed}"
    )


def _expand(
    params: Mapping[str, ParamSpec], bindings: Bindings, generics: Mapping[str, int | str]
) -> tuple[dict[str, Expr], list[str]]:
    """Rules applied to parameters: exact paths first, then templates."""
    exact = {rule.path: rule for rule in bindings.rules if not rule.is_template}
    templates = [rule for rule in bindings.rules if rule.is_template]
    idle = {rule.path for rule in bindings.rules}
    expressions: dict[str, Expr] = {}
    faults: list[str] = []
    for path in params:
        matches = [(exact[path], {})] if path in exact else _matches(templates, path)
        idle -= {rule.path for rule, _ in matches}
        if len(matches) != 1:
            names = " and ".join(f"'{rule.path}'" for rule, _ in matches)
            faults.append(
                f"parameter '{path}' ({_spec_text(params[path])}): "
                + (f"{names} both bind it" if matches else f"no binding{_nearest(path, exact, len(faults))}")
            )
            continue
        rule, indices = matches[0]
        try:
            expressions[path] = rule.expression(indices, generics)
        except BindingError as error:
            faults.append(f"parameter '{path}': {error}")
    for path in sorted(idle):
        faults.append(
            f"binding '{path}': the definition has no such parameter{_nearest(path, params, len(faults))}"
        )
    return expressions, faults


def _matches(templates: list[Rule], path: str) -> list[tuple[Rule, dict[str, str]]]:
    found = ((rule, rule.match(path)) for rule in templates)
    return [(rule, indices) for rule, indices in found if indices is not None]


def _stored_names(bindings: Bindings, types: Mapping[str, TensorSpec]) -> dict[str, str]:
    """Tied tensors that a checkpoint stores under their other name only: bound name to stored name."""
    return {name: alias for alias, name in bindings.ties.items() if alias in types and name not in types}


def _faults_of(
    param: ParamSpec, expression: Expr, types: Mapping[str, TensorSpec], *, hint: bool
) -> list[str]:
    where = f"parameter '{param.path}' ({_spec_text(param)})"
    absent = [name for name in dict.fromkeys(expression.sources()) if name not in types]
    if absent:
        near = _SUGGESTIONS if not hint else 0
        return [
            f"{where}: the checkpoint has no tensor '{name}'{_nearest(name, types, near)}" for name in absent
        ]
    try:
        came = expression.infer(types)
    except BindingError as error:
        return [f"{where}: {error}"]
    faults = []
    if came.shape != param.shape:
        faults.append(
            f"{where}: {expression} has the shape {list(came.shape)}{_transposed(came.shape, param.shape)}"
        )
    if _kind(came.dtype) != _kind(param.dtype):
        faults.append(f"{where}: {expression} has the dtype {came.dtype}")
    return faults


def _transposed(came: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """A hint where another order of the axes has the wanted shape."""
    orders = permutations(range(len(came))) if len(came) <= 4 else iter(())
    for order in orders:
        if tuple(came[axis] for axis in order) == wanted:
            name = "the transpose matches" if len(came) == 2 else f"its axes in the order {list(order)} match"
            return f" ({name})"
    return ""


def _nearest(name: str, names: Mapping[str, Any], faults_before: int) -> str:
    found = nearest(name, names) if faults_before < _SUGGESTIONS else []
    return f"; nearest: {', '.join(found)}" if found else ""


def _kind(dtype: str) -> str:
    if dtype == "bool":
        return "bool"
    return "float" if "f" in dtype else "int"


def _spec_text(param: ParamSpec) -> str:
    return str(TensorSpec(param.shape, param.dtype))


def _equal(checkpoint: Checkpoint, one: str, other: str) -> bool:
    first, second = checkpoint[one], checkpoint[other]
    if first.spec != second.spec:
        return False
    # By bytes: NaN equals itself here.
    raw, repeated = (
        np.ascontiguousarray(view.array()).reshape(-1).view(np.uint8) for view in (first, second)
    )
    return np.array_equal(raw, repeated)
