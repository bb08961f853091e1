"""Arrays in and out of jax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nest.backends.jax.dtypes import jax_dtype

__all__ = ["JaxArrays", "on_host"]


class JaxArrays:
    """See `nest.backends.calls.Arrays`.

    What comes from the host stays a numpy array, which a compiled call takes at less cost than a device array made
    for it; it is always a copy, since a computation may still run when its caller changes the array that it gave.
    """

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def kind(self, x: Any) -> str:
        for kind, dtypes in (("float", jnp.floating), ("int", jnp.integer), ("bool", jnp.bool_)):
            if jnp.issubdtype(x.dtype, dtypes):
                return kind
        return "complex" if jnp.issubdtype(x.dtype, jnp.complexfloating) else str(x.dtype)

    def is_array(self, x: Any) -> bool:
        return isinstance(x, jax.Array | np.ndarray)

    def from_python(self, x: Any, kind: str) -> Any:
        # Tensors of other frameworks arrive here too, through their own conversion.
        array = np.asarray(x)
        if array.size == 0 and array.dtype.kind == "f" and kind == "int":
            array = array.astype(np.int32)
        return array

    def bounds(self, x: Any) -> tuple[int, int] | None:
        """Jax has no wide integers of its own; those of numpy are looked at."""
        if not isinstance(x, np.ndarray) or x.size == 0 or (x.dtype.kind == "i" and x.dtype.itemsize <= 4):
            return None
        return int(x.min()), int(x.max())

    def native(self, x: Any, dtype: str) -> Any:
        wanted = jax_dtype(dtype)
        return x.astype(wanted) if isinstance(x, jax.Array) else np.array(x, wanted)

    def full(self, shape: Sequence[int], value: int, dtype: str) -> Any:
        return np.full(tuple(shape), value, jax_dtype(dtype))


def on_host(x: Any) -> np.ndarray[Any, Any]:
    """An array as a numpy array; bf16, which numpy lacks, becomes f32."""
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == jnp.bfloat16 else array
