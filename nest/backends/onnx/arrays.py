"""Arrays in and out: numpy on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nest.backends.onnx.dtypes import numpy_dtype

__all__ = ["HostArrays"]

_KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool", "c": "complex"}


class HostArrays:
    """See `nest.backends.calls.Arrays`; native arrays are numpy's, contiguous as the runtime reads them."""

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def kind(self, x: Any) -> str:
        return "float" if x.dtype.name == "bfloat16" else _KINDS.get(x.dtype.kind, str(x.dtype))

    def is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def from_python(self, x: Any, kind: str) -> Any:
        # Tensors of other frameworks arrive here too, through their own conversion.
        array = np.asarray(x)
        if array.size == 0 and array.dtype.kind == "f" and kind == "int":
            array = array.astype(np.int32)
        return array

    def bounds(self, x: Any) -> tuple[int, int] | None:
        narrow = x.dtype.kind == "i" and x.dtype.itemsize <= 4
        return None if narrow or x.size == 0 else (int(x.min()), int(x.max()))

    def native(self, x: Any, dtype: str) -> Any:
        return np.asarray(x, numpy_dtype(dtype), order="C")

    def full(self, shape: Sequence[int], value: int, dtype: str) -> Any:
        return np.full(tuple(shape), value, numpy_dtype(dtype))
