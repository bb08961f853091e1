"""Products with quantized weights: see `nest.ir.passes.quantize`.

By the plan `fast` the input is rounded to 8 bits too, and bytes are multiplied: all of it in 255 steps where the weight
has 8 bits, each group of 32 of a row in steps of its own where it has 4. By the plan `exact`, and where the runtime's
own ops are not to be used, weights are turned into floats.
"""

from __future__ import annotations

import onnx_ir as ir

from nest.backends.onnx.graph import CONTRIB, Tensor
from nest.backends.onnx.rules._registry import Lowering, rule
from nest.backends.onnx.rules.contraction import rows_of
from nest.ir.dim import Dim
from nest.ir.passes.quantize import GROUP

__all__: list[str] = []

_BY_BYTES = 4
"""`accuracy_level` of MatMulNBits: the input in 8 bits. Without it a product takes over a hundred times as long."""


@rule
def quantized_linear(
    low: Lowering, x: Tensor, values: Tensor, scales: Tensor, bias: Tensor | None
) -> ir.Value:
    rows, width = rows_of(x), x.shape[-1]
    flat = Tensor((rows, width), x.dtype, low.dims.reshape(x.value, x.shape, (rows, width)))
    taken = low.wide(flat)
    added = None if bias is None else low.wide(bias)
    eight = values.rank == 2
    if low.graph.contrib:
        y = (_dynamic if eight else _grouped)(low, taken, values, scales, added)
    elif eight:
        weight = low.op("DequantizeLinear", values, scales, axis=1)
        y = low.op("Gemm", taken, weight, added)
    else:
        y = low.op("Gemm", taken, _unpacked(low, values, scales), added, transB=1)
    out = low.out.shape[-1]
    return low.dims.reshape(low.narrow(y, x.dtype), (rows, out), low.out.shape)


def _dynamic(low: Lowering, x: ir.Value, values: Tensor, scales: Tensor, bias: ir.Value | None) -> ir.Value:
    # In two ops, so that products of one input round it once.
    steps, step, zero = low.graph.ops("DynamicQuantizeLinear", 3, x)
    return low.op("MatMulIntegerToFloat", steps, values, step, scales, zero, None, bias, domain=CONTRIB)


def _grouped(low: Lowering, x: ir.Value, values: Tensor, scales: Tensor, bias: ir.Value | None) -> ir.Value:
    out, groups = (int(d) for d in scales.shape)
    sizes = {"K": groups * GROUP, "N": out, "bits": 4, "block_size": GROUP, "accuracy_level": _BY_BYTES}
    return low.op("MatMulNBits", x, values, scales, None, None, bias, domain=CONTRIB, **sizes)


def _unpacked(low: Lowering, values: Tensor, scales: Tensor) -> ir.Value:
    """The weight f32 [Out, In] of groups of 4 bits."""
    both = low.graph.cast(values, "i32")
    sixteen = low.constant(16, "i32")
    nibbles = (low.op("Mod", both, sixteen), low.op("Div", both, sixteen))
    pairs = low.op("Concat", *(low.unsqueeze(n, 3) for n in nibbles), axis=3)
    out, groups = scales.shape
    shape = (out, groups, Dim.constant(GROUP))
    steps = low.op("Reshape", pairs, low.integers(*(int(d) for d in shape)))
    centred = low.op("Sub", low.graph.cast(steps, "f32"), low.constant(8, "f32"))
    weight = low.op("Mul", centred, low.unsqueeze(scales.value, 2))
    return low.op("Reshape", weight, low.integers(int(out), int(groups) * GROUP))
