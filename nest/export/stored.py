"""What a checkpoint of an entry holds: its tensors' names, shapes and types, as its bindings say it."""

from __future__ import annotations

from collections.abc import Mapping

from nest.errors import BindingError
from nest.export.portable import Portable
from nest.ir.parammap import Cast, Expr, ParamMap, Slice, Source, TensorSpec, Transpose
from nest.registry import Entry
from nest.registry.bindings import Bindings
from nest.registry.tensors import read_tensors
from nest.weights.bind import resolve

__all__ = ["stored_tensors"]


def stored_tensors(model: Portable, entry: Entry) -> tuple[dict[str, Expr], dict[str, TensorSpec]]:
    """The tensors of the checkpoint as expressions over the model's parameters, and what each of them is.

    The list that is committed beside the entry says them where the model has the checkpoint's sizes. For other sizes
    they follow from the bindings, so far as those take tensors as they are, transposed or cut.

    Raises:
        BindingError: the bindings do not say it.
    """
    generics = {n: g.value for n, g in model.program.root.generics.items() if g.value is not None}
    listed = read_tensors(entry.directory, entry.name)
    types: Mapping[str, TensorSpec] = {} if listed is None else listed.specs
    try:
        expressions = resolve(model.params, entry.bindings, types, source=entry.name, generics=generics)
    except BindingError:
        types = _derived(model, entry, generics)
        expressions = resolve(model.params, entry.bindings, types, source=entry.name, generics=generics)
    stored = dict(ParamMap(expressions).inverse(types).expressions)
    for alias, name in entry.bindings.ties.items():
        if alias in types and name in stored:
            stored[alias] = stored[name]
    ours = model.specs
    return stored, {name: expression.infer(ours) for name, expression in stored.items()}


def _derived(model: Portable, entry: Entry, generics: Mapping[str, int | str]) -> dict[str, TensorSpec]:
    types: dict[str, TensorSpec] = {}
    for path, spec in model.params.items():
        expression = _expression(entry.bindings, path, generics)
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
