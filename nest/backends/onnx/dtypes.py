"""Element types: nest's names, ONNX's and numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

__all__ = ["ONNX", "numpy_dtype"]

ONNX: dict[str, ir.DataType] = {
    "f64": ir.DataType.DOUBLE,
    "f32": ir.DataType.FLOAT,
    "f16": ir.DataType.FLOAT16,
    "bf16": ir.DataType.BFLOAT16,
    "i64": ir.DataType.INT64,
    "i32": ir.DataType.INT32,
    "i16": ir.DataType.INT16,
    "i8": ir.DataType.INT8,
    "u8": ir.DataType.UINT8,
    "bool": ir.DataType.BOOL,
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a dtype's name; bf16 is `ml_dtypes`' own."""
    return np.dtype(ONNX[name].numpy())
