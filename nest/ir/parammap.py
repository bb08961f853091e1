"""The algebra that bindings and graph passes share: parameters as expressions over stored tensors."""

from __future__ import annotations

from nest.ir._param_expr import (
    STORED_DTYPES,
    Cast,
    Concat,
    Expr,
    Reshape,
    Slice,
    Source,
    TensorSpec,
    Transpose,
    Zeros,
)

__all__ = [
    "STORED_DTYPES",
    "Cast",
    "Concat",
    "Expr",
    "Reshape",
    "Slice",
    "Source",
    "TensorSpec",
    "Transpose",
    "Zeros",
]
