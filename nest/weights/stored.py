"""Bindings undone: the tensors of a checkpoint as expressions over a model's parameters."""

from __future__ import annotations

from collections.abc import Mapping

from nest.errors import BindingError
from nest.ir.parammap import Cast, Expr, ParamMap, Slice, Source, TensorSpec, Transpose
from nest.ir.types import ParamSpec
from nest.registry.bindings import Bindings
from nest.weights.bind import resolve

__all__ = ["stored_tensors"]


def stored_tensors(
    params: Mapping[str, ParamSpec],
    bindings: Bindings,
    *,
    source: str,
    generics: Mapping[str, int | str],
    listed: Mapping[str, TensorSpec] | None = None,
) -> dict[str, Expr]:
    """The tensors of a checkpoint as expressions over parameters; those that bindings ignore are left out.

    The list of the entry's own checkpoint says them where the model has its sizes. For other sizes they follow from the
    bindings, so far as those take tensors as they are, transposed or cut.

    Args:
        params: the model's parameters, by definition path.
        bindings: which tensors each is made of.
        source: names the entry in errors.
        generics: values for sizes in the bindings that are expressions.
        listed: the tensors of the entry's checkpoint, where they are known.

    Raises:
        BindingError: the bindings do not say it.
    """
    types = dict(listed or {})
    try:
        expressions = resolve(params, bindings, types, source=source, generics=generics)
    except BindingError:
        types = _derived(params, bindings, generics)
        expressions = resolve(params, bindings, types, source=source, generics=generics)
    stored = dict(ParamMap(expressions).inverse(types).expressions)
    for alias, name in bindings.ties.items():
        if alias in types and name in stored:
            stored[alias] = stored[name]
    return stored


def _derived(
    params: Mapping[str, ParamSpec], bindings: Bindings, generics: Mapping[str, int | str]
) -> dict[str, TensorSpec]:
    types: dict[str, TensorSpec] = {}
    for path, spec in params.items():
        expression = _expression(bindings, path, generics)
        if expression is not None:
            _note(expression, TensorSpec(spec.shape, spec.dtype), types)
    return types


def _expression(bindings: Bindings, path: str, generics: Mapping[str, int | str]) -> Expr | None:
    """As `resolve` has it, which names what is missing."""
    rules = sorted(bindings.rules, key=lambda rule: rule.is_template)
    matches = ((rule, rule.match(path)) for rule in rules)
    return next((rule.expression(found, generics) for rule, found in matches if found is not None), None)


def _note(expression: Expr, spec: TensorSpec, types: dict[str, TensorSpec]) -> None:
    """Find the types of an expression's sources, given its own."""
    match expression:
        case Source(name):
            known = types.get(name)
            types[name] = spec if known is None else _larger(known, spec)
        case Transpose(of, perm):
            shape = tuple(spec.shape[perm.index(axis)] for axis in range(len(perm)))
            _note(of, TensorSpec(shape, spec.dtype), types)
        case Slice(of, axis, _, stop):
            # The last piece of a tensor ends where the tensor does.
            shape = (*spec.shape[:axis], stop, *spec.shape[axis + 1 :])
            _note(of, TensorSpec(shape, spec.dtype), types)
        case Cast(of, _):
            _note(of, spec, types)
        case _:
            return  # what it reads stays unknown, which `resolve` says by name


def _larger(one: TensorSpec, other: TensorSpec) -> TensorSpec:
    return TensorSpec(tuple(map(max, one.shape, other.shape)), one.dtype)
