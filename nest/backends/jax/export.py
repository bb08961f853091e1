"""Entries as StableHLO, through `jax.export`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from jax import Array, export

from nest.backends.jax.dtypes import abstract, jax_dtype
from nest.backends.jax.engine import Engine, used_states, written_states
from nest.ir.dim import Dim
from nest.ir.inventory import states as state_specs
from nest.ir.program import Function, Program
from nest.ir.relation import Relation

__all__ = ["exported_entry"]


def exported_entry(
    engine: Engine,
    name: str,
    params: Mapping[str, Array],
    session: Mapping[str, int],
    platforms: Sequence[str] | None = None,
) -> export.Exported:
    """One entry with its generics (`B`, `S`, ...) symbolic, and its `where` rules as their constraints.

    Args:
        engine: of the model.
        name: the entry.
        params: give shapes and types.
        session: values of `Batch` and `Capacity`, which are fixed.
        platforms: what it is lowered for, such as `("cpu", "cuda")`; where jax runs here if left out.

    Returns:
        `exported.call(params, kept, written, *arguments) -> (results, written)`: dicts by definition path of the
        parameters, of the states that the entry only reads, and of those that it writes.
    """
    program = engine.program
    function = program.entries[name]
    sizes = {**_values(program), **session}
    sizes = {**sizes, **_symbols(function, sizes)}
    arguments = [
        abstract([d.evaluate(sizes) for d in p.type.shape], jax_dtype(p.type.dtype.value))
        for p in function.signature.parameters
    ]
    specs = state_specs(program)
    written = written_states(function)
    states = {
        path: abstract(specs[path].bound(session), jax_dtype(specs[path].dtype))
        for path in used_states(function)
    }
    shapes = {path: abstract(x.shape, x.dtype) for path, x in params.items()}
    kept = {path: s for path, s in states.items() if path not in written}
    make = export.export(jax.jit(engine.pure(name)), platforms=platforms)
    with _traced_for(platforms):
        return make(shapes, kept, {path: states[path] for path in written}, *arguments)


def _traced_for(platforms: Sequence[str] | None) -> AbstractContextManager[Any]:
    """In which rules take no kernel that one of the platforms lacks: what the CPU computes, all can."""
    here = jax.default_backend()
    if platforms is None or here == "cpu" or set(platforms) <= _NAMES.get(here, {here}):
        return nullcontext()
    context: AbstractContextManager[Any] = jax.default_device(jax.local_devices(backend="cpu")[0])
    return context


# What `jax.export` calls the platforms of a backend.
_NAMES = {"gpu": {"gpu", "cuda", "rocm"}}


def _values(program: Program) -> dict[str, Any]:
    generics = program.root.generics.items()
    return {n: v.value for n, v in generics if isinstance(v, Dim) and v.value is not None}


def _symbols(function: Function, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The entry's generics as jax's symbolic sizes."""
    names = function.signature.generics
    if not names:
        return {}
    text = ", ".join(names)
    free = dict(zip(names, export.symbolic_shape(text), strict=True))
    constraints = [c for rule in function.signature.rules if (c := _constraint(rule, {**sizes, **free}))]
    return dict(zip(names, export.symbolic_shape(text, constraints=constraints), strict=True))


def _constraint(rule: Relation, sizes: Mapping[str, Any]) -> str | None:
    """A rule over symbolic sizes as jax takes it, None where jax has no such relation or the rule is settled."""
    left, right = rule.left.evaluate(sizes), rule.right.evaluate(sizes)
    if rule.op == "!=" or (isinstance(left, int) and isinstance(right, int)):
        return None
    if rule.op in ("<", ">"):
        left, right = (left + 1, right) if rule.op == "<" else (left, right + 1)
    return f"{left} {rule.op.rstrip('=') + '='} {right}" if rule.op != "==" else f"{left} == {right}"
