"""Element types: nest's names and numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["numpy_dtype"]

_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u8": "uint8", "bool": "bool",
}  # fmt: skip


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a dtype's name; bf16 is `ml_dtypes`' own."""
    if name == "bf16":
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return narrow
    return np.dtype(_NAMES[name])
