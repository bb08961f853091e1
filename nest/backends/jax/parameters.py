"""Parameters from the host's memory, or from mapped files, to where they belong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding

from nest.backends.jax.dtypes import jax_dtype
from nest.backends.jax.placement import Placement
from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.ir.program import Program
from nest.ir.types import ParamSpec

__all__ = ["placed", "put", "stored_dtype"]


def placed(
    program: Program,
    params: Mapping[str, np.ndarray[Any, Any]],
    place: Placement,
    param_dtype: str | None = None,
) -> dict[str, Array]:
    """Parameters where they belong, in the program's order, and in the program's types or float ones of another."""
    return {
        path: put(params[path], stored_dtype(spec, param_dtype), place.parameter(path))
        for path, spec in parameters(program).items()
    }


def stored_dtype(spec: ParamSpec, param_dtype: str | None) -> Any:
    """The element type in which a parameter is kept.

    Raises:
        CallError: `param_dtype` is no float type of jax.
    """
    own = jax_dtype(spec.dtype)
    if param_dtype is None or not jnp.issubdtype(own, jnp.floating):
        return own
    kept = jax_dtype(param_dtype)
    if not jnp.issubdtype(kept, jnp.floating):
        raise CallError(
            f"param_dtype='{param_dtype}' is no float type; parameters are kept in 'f32', 'f16' or 'bf16'."
        )
    return kept


def put(array: np.ndarray[Any, Any], dtype: Any, where: Any) -> Array:
    """A copy of a host array on a device, or of each device's own part of it on that device.

    Of an array that is mapped from a file, a spread parameter reads the parts that this process's devices hold, one
    after another, and never the whole.
    """
    if isinstance(where, NamedSharding) and math.prod(array.shape):
        # Copies, always: on the CPU jax may otherwise go on reading the caller's own memory.
        return jax.make_array_from_callback(
            array.shape, where, lambda part: np.array(array[part], dtype), dtype
        )
    placed: Array = jax.device_put(np.array(array, dtype), where)
    return placed
