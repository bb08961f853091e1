"""Evaluate expressions over stored tensors with numpy.

Slices, transposes and reshapes of contiguous tensors are views; only concat, cast and zeros allocate, and
nested concats and casts write into one array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import BindingError
from nest.ir.parammap import Cast, Concat, Expr, Reshape, Slice, Source, TensorSpec, Transpose, Zeros
from nest.weights.checkpoint import numpy_dtype

__all__ = ["evaluate"]

Array = npt.NDArray[Any]


def evaluate(expression: Expr, types: Mapping[str, TensorSpec], read: Callable[[str], Array]) -> Array:
    """The array that `expression` stands for.

    Args:
        expression: what to compute.
        types: shape and dtype of every stored tensor that it reads.
        read: gives a stored tensor by name.

    Raises:
        BindingError: the expression does not fit the tensors.
    """
    return _Evaluator(types, read).value(expression)


class _Evaluator:
    def __init__(self, types: Mapping[str, TensorSpec], read: Callable[[str], Array]) -> None:
        self._types = types
        self._read = read

    def value(self, expression: Expr) -> Array:
        match expression:
            case Source(name):
                return self._read(name)
            case Slice(of, axis, start, stop):
                return self.value(of)[(slice(None),) * axis + (slice(start, stop),)]
            case Transpose(of, perm):
                return self.value(of).transpose(perm)
            case Reshape(of, shape):
                return self.value(of).reshape(shape)
        spec = expression.infer(self._types)
        result: Array = np.zeros(spec.shape, _dtype(spec))
        self._into(expression, result)
        return result

    def _into(self, expression: Expr, target: Array) -> None:
        """Write the value into `target`, converting to its dtype."""
        match expression:
            case Zeros():
                return
            case Cast(of, dtype) if numpy_dtype(dtype) == target.dtype:
                self._into(of, target)
            case Concat(parts, axis):
                start = 0
                for part in parts:
                    stop = start + part.infer(self._types).shape[axis]
                    self._into(part, target[(slice(None),) * axis + (slice(start, stop),)])
                    start = stop
            case _:
                np.copyto(target, self.value(expression), casting="unsafe")


def _dtype(spec: TensorSpec) -> np.dtype[Any]:
    dtype = numpy_dtype(spec.dtype)
    if dtype is None:
        raise BindingError(f"{spec.dtype} needs the package 'ml_dtypes': pip install ml_dtypes")
    return dtype
