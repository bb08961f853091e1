"""A plan on jax: entries compiled from the plan's program, over parameters packed from the model's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from nest.backends.jax.dtypes import jax_dtype
from nest.backends.jax.engine import Engine, Results, States
from nest.backends.jax.lower import lower
from nest.backends.jax.placement import Placement
from nest.backends.packing import Packer
from nest.ir.parammap import ParamMap
from nest.ir.plan import Plan

__all__ = ["PackedParams", "planned_engine"]

Params = Mapping[str, Array]


def planned_engine(plan: Plan, compilations: Counter[str], place: Placement) -> Engine:
    """What computes a plan's entries; see `Engine` for what it is given."""

    def run(name: str, params: Params, states: States, arguments: Sequence[Any]) -> tuple[Results, States]:
        after = dict(states)
        return lower(plan.program.entries[name], params, after, arguments), after

    return Engine(plan.program, run, compilations, place=place)


class PackedParams:
    """A model's parameters packed for a plan: once, and again after they have changed."""

    def __init__(self, params: ParamMap) -> None:
        self._map = params
        self._of: Params = {}
        self._packed: dict[str, Array] = {}

    def of(self, params: Params) -> dict[str, Array]:
        """The plan's parameters over the model's, as these are now."""
        # Arrays of jax never change: where the model's are the same objects, so are their values.
        if len(params) != len(self._of) or any(self._of.get(path) is not x for path, x in params.items()):
            self._packed = _PACKER.packed(self._map, params.__getitem__)
            self._of = dict(params)
        return self._packed


_PACKER = Packer(
    concat=lambda parts, axis: jnp.concatenate(list(parts), axis),
    transpose=jnp.transpose,
    zeros=lambda shape, dtype: jnp.zeros(shape, jax_dtype(dtype)),
)
