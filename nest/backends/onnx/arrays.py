"""Arrays in and out: numpy on the host."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from nest.backends.onnx.dtypes import numpy_dtype
from nest.ir.dim import Dim
from nest.ir.program import Function

__all__ = ["HostArrays", "empty_results"]

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


def empty_results(
    function: Function, arguments: Sequence[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]] | None:
    """The results of a call where all of them are empty, which the runtime's kernels do not compute; else None."""
    if all(x.size for x in arguments):
        return None
    generics = function.block.generics.items()
    symbols = {n: d.value for n, d in generics if isinstance(d, Dim) and d.value is not None}
    for parameter, array in zip(function.signature.parameters, arguments, strict=True):
        for dim, size in zip(parameter.type.shape, array.shape, strict=True):
            symbols.setdefault(dim.as_symbol() or "", size)
    types = function.signature.results
    shapes = [tuple(d.evaluate(symbols) for d in t.shape) for t in types]
    if any(map(prod, shapes)):
        return None
    return [np.empty(s, numpy_dtype(t.dtype.value)) for s, t in zip(shapes, types, strict=True)]
