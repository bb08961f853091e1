"""Element types as ONNX numbers them."""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["ONNX"]

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
