"""Matrix products and convolutions."""

from __future__ import annotations

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor, transposed
from nest.backends.onnx.rules._registry import Lowering, rule
from nest.ir.dim import Dim

__all__ = ["rows_of"]


@rule
def linear(low: Lowering, x: Tensor, weight: Tensor, bias: Tensor | None) -> ir.Value:
    """Gemm reads the weight as it is stored, [Out, In] or turned; MatMul would need a transposed copy of it."""
    rows = rows_of(x)
    flat = low.dims.reshape(x.value, x.shape, (rows, x.shape[-1]))
    turned = transposed(weight.value)
    y = low.op("Gemm", flat, turned[0], bias) if turned else low.op("Gemm", flat, weight, bias, transB=1)
    return low.dims.reshape(y, (rows, weight.shape[0]), low.out.shape)


def rows_of(x: Tensor) -> Dim:
    """All axes but the last as one."""
    rows = Dim.constant(1)
    for dim in x.shape[:-1]:
        rows = rows * dim
    return rows


@rule
def expert_linear(low: Lowering, x: Tensor, weight: Tensor, experts: Tensor) -> ir.Value:
    matrices = low.op("Gather", weight, experts, axis=0)
    y = low.op("MatMul", matrices, low.unsqueeze(x.value, 2))
    return low.op("Squeeze", y, low.integers(2))


@rule
def einsum(low: Lowering, *operands: Tensor, equation: str) -> ir.Value:
    return low.narrow(low.op("Einsum", *map(low.wide, operands), equation=_lower(equation)), low.out.dtype)


def _lower(equation: str) -> str:
    """The equation in small letters of the alphabet, which is what ONNX names axes by."""
    used = dict.fromkeys(filter(str.isalpha, equation))
    letters = dict(zip(used, "abcdefghijklmnopqrstuvwxyz", strict=False))
    return "".join(letters.get(c, c) for c in equation)


@rule
def conv(
    low: Lowering,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    groups: Dim,
) -> ir.Value:
    return low.op("Conv", x, weight, bias, strides=stride, pads=(*padding, *padding), group=int(groups))


@rule
def max_pool(low: Lowering, x: Tensor, *, kernel: int, stride: int, padding: int) -> ir.Value:
    sides = (kernel, kernel), (stride, stride), (padding,) * 4
    return low.op("MaxPool", x, kernel_shape=sides[0], strides=sides[1], pads=sides[2])
