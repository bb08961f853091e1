"""Element types of a program in jax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nest.errors import CallError

__all__ = ["abstract", "jax_dtype"]

_DTYPES: dict[str, Any] = {
    "f32": jnp.float32,
    "f16": jnp.float16,
    "bf16": jnp.bfloat16,
    "i32": jnp.int32,
    "i16": jnp.int16,
    "i8": jnp.int8,
    "u8": jnp.uint8,
    "bool": jnp.bool_,
}


def jax_dtype(name: str) -> Any:
    """The jax type of a concrete element type such as `"f32"`.

    Raises:
        CallError: jax has it only with its x64 switch, which is for the whole process.
    """
    if name not in _DTYPES:
        raise CallError(
            f"The jax backend computes in {', '.join(_DTYPES)}, and '{name}' was asked for. For double precision take "
            f"backend='reference' with precision='f64'."
        )
    return _DTYPES[name]


def abstract(shape: Sequence[Any], dtype: Any) -> jax.ShapeDtypeStruct:
    """A shape, whose sizes may be symbolic, and an element type in place of an array."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)  # type: ignore[no-untyped-call]
