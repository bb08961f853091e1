"""The methods of a split module as pure functions by definition path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from flax import nnx
from jax import Array

from nest.backends.jax.dtypes import abstract
from nest.backends.jax.engine import Run, States
from nest.ir.inventory import states as state_specs
from nest.ir.program import Program
from nest.ir.types import StateSpec

__all__ = ["pure_entries"]


def pure_entries(program: Program, graph: Any, state: Any) -> Run:
    """The entries of a module that was split into `graph` and `state`.

    The module is merged when jax traces; a compiled call takes plain dicts of arrays.
    """
    specs = state_specs(program)
    # Shapes are enough: the values come with each call, and these must not stay in memory.
    shapes = jax.tree.map(lambda x: abstract(x.shape, x.dtype), state)
    variables = [(path, v) for path, v in nnx.to_flat_state(shapes)]

    def run(
        name: str, params: Mapping[str, Array], states: States, arguments: Sequence[Any]
    ) -> tuple[tuple[Array, ...], States]:
        filled = [(path, v.replace(params[_text(path)])) for path, v in variables]
        model = nnx.merge(graph, nnx.from_flat_state(filled))
        function = program.entries[name]
        if not function.uses_state:
            results, after = model._generated(name, *arguments), {}
        else:
            tree = model.new_state(**_symbols(specs, states))
            caches = {_text(path): v for path, v in nnx.iter_graph(tree) if isinstance(v, nnx.Variable)}
            for path, array in states.items():
                caches[path].set_value(array)
            results = model._generated(name, *arguments, tree)
            after = {path: caches[path].get_value() for path in states}
        return (results,) if function.signature.single else tuple(results), after

    return run


def _text(path: Sequence[Any]) -> str:
    return ".".join(map(str, path))


def _symbols(specs: Mapping[str, StateSpec], states: Mapping[str, Array]) -> dict[str, int]:
    """`Batch` and `Capacity`, as the shapes of states have them; 1 where none does."""
    found: dict[str, int] = {}
    for path, array in states.items():
        for dim, size in zip(specs[path].shape, array.shape, strict=True):
            name = None if isinstance(dim, int) else dim.as_symbol()
            if name is not None:
                found.setdefault(name, size)
    return {"Batch": found.get("Batch", 1), "Capacity": found.get("Capacity", 1)}
