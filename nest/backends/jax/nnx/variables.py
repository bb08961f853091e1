"""The variables of a module: found by definition path, filled with arrays, drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from nest.backends.generated import load_generated
from nest.backends.jax.dtypes import jax_dtype
from nest.backends.jax.nnx.source import nnx_module
from nest.backends.jax.parameters import stored_dtype
from nest.backends.jax.placement import Placement, held
from nest.ir.inventory import parameters
from nest.ir.program import Program

__all__ = ["drawn", "filled", "variables"]

M = TypeVar("M", bound=nnx.Module)


def variables(model: nnx.Module) -> Iterator[tuple[str, nnx.Variable[Array]]]:
    """The variables of a module by definition path."""
    for path, node in nnx.iter_graph(model):
        if isinstance(node, nnx.Variable):
            yield ".".join(map(str, path)), node


def filled(model: M, arrays: Mapping[str, Array], place: Placement | None = None) -> M:
    """The module with these values; variables that are spread over a mesh say so, as Flax wants it.

    `out_sharding` is set for those alone: Flax refuses to make a variable with it, as an optimizer does for each
    parameter, where there is no mesh.
    """
    for path, variable in variables(model):
        if place is not None and path in place.specs:
            variable.set_metadata(out_sharding=tuple(place.specs[path]))
        variable.set_raw_value(arrays[path])
    return model


def drawn(program: Program, rngs: nnx.Rngs, place: Placement, param_dtype: str | None) -> dict[str, Array]:
    """Random parameters as the generated constructor draws them from `rngs`, each device its own part."""
    made = nnx_module(program)
    generated = getattr(load_generated(made.text, f"{program.name}_nnx"), made.root)
    arguments = made.arguments(jnp)
    if param_dtype is not None:
        arguments = {n: v if isinstance(v, int) else jax_dtype(param_dtype) for n, v in arguments.items()}
    dtypes = {path: stored_dtype(spec, param_dtype) for path, spec in parameters(program).items()}

    def draw(rngs: nnx.Rngs) -> dict[str, Array]:
        model = generated(**arguments, rngs=rngs)
        values = {path: v.get_raw_value().astype(dtypes[path]) for path, v in variables(model)}
        spread = {path: held(values[path], place.parameter(path)) for path in place.specs}
        return {**values, **spread}

    arrays: dict[str, Array] = nnx.jit(draw)(rngs)
    return {path: jax.device_put(arrays[path], place.parameter(path)) for path in dtypes}
