"""Elementwise ops. A number beside a tensor becomes a constant of the tensor's element type."""

from __future__ import annotations

import math

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor
from nest.backends.onnx.rules._registry import Lowering, Operand, rule, wide_dtype
from nest.ir.dtype import DType

__all__: list[str] = []

_NARROW = ("i16", "i8", "u8")


def _pair(low: Lowering, a: Operand, b: Operand) -> tuple[ir.Value, ir.Value, str]:
    """Both operands as values of the tensor's type."""
    dtype = next(x.dtype for x in (a, b) if isinstance(x, Tensor))
    return low.value(a, dtype), low.value(b, dtype), dtype


def _arithmetic(low: Lowering, op: str, a: Operand, b: Operand) -> ir.Value:
    """Integers below 32 bits, for which runtimes have few kernels, are computed in 32 and cut to their width."""
    left, right, dtype = _pair(low, a, b)
    if dtype not in _NARROW:
        return low.op(op, left, right)
    wide = low.op(op, low.graph.cast(left, "i32"), low.graph.cast(right, "i32"))
    return low.graph.cast(wide, dtype)


@rule
def neg(low: Lowering, x: Tensor) -> ir.Value:
    if x.dtype in _NARROW:
        return _arithmetic(low, "Sub", 0, x)
    return low.op("Neg", x)


@rule
def abs_(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Abs", x)


@rule
def exp(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Exp", x)


@rule
def log(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Log", x)


@rule
def sqrt(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Sqrt", x)


@rule
def rsqrt(low: Lowering, x: Tensor) -> ir.Value:
    return low.narrow(low.op("Reciprocal", low.op("Sqrt", low.wide(x))), x.dtype)


@rule
def sin(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Sin", x)


@rule
def cos(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Cos", x)


@rule
def tanh(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Tanh", x)


@rule
def erf(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Erf", x)


@rule
def sigmoid(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Sigmoid", x)


@rule
def silu(low: Lowering, x: Tensor) -> ir.Value:
    y = low.wide(x)
    return low.narrow(low.op("Mul", y, low.op("Sigmoid", y)), x.dtype)


@rule
def relu(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Relu", x)


@rule
def gelu(low: Lowering, x: Tensor, *, approximate: bool) -> ir.Value:
    y = low.wide(x)
    if low.graph.opset >= 20:
        return low.narrow(low.op("Gelu", y, approximate="tanh" if approximate else "none"), x.dtype)

    def number(value: float) -> ir.Value:
        return low.constant(value, wide_dtype(x.dtype))

    if approximate:
        cubic = low.op("Mul", low.op("Mul", low.op("Mul", y, y), y), number(0.044715))
        inner = low.op("Tanh", low.op("Mul", low.op("Add", y, cubic), number(math.sqrt(2 / math.pi))))
    else:
        inner = low.op("Erf", low.op("Mul", y, number(math.sqrt(0.5))))
    half = low.op("Mul", y, number(0.5))
    return low.narrow(low.op("Mul", half, low.op("Add", inner, number(1.0))), x.dtype)


@rule
def add(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Add", a, b)


@rule
def sub(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Sub", a, b)


@rule
def mul(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Mul", a, b)


@rule
def div(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Div", a, b)


@rule
def floordiv(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    """Div rounds towards zero; what is left after Mod, whose sign is b's, divides exactly.

    The difference may need one bit more than the operands, so it is taken in 64.
    """
    left, right, dtype = _pair(low, a, b)
    left, right = (x if dtype == "i64" else low.graph.cast(x, "i64") for x in (left, right))
    result = low.op("Div", low.op("Sub", left, low.op("Mod", left, right)), right)
    return result if dtype == "i64" else low.graph.cast(result, dtype)


@rule
def mod(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Mod", a, b)


@rule
def power(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Pow", a, b)


@rule
def maximum(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Max", a, b)


@rule
def minimum(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _arithmetic(low, "Min", a, b)


def _compared(low: Lowering, op: str, a: Operand, b: Operand) -> ir.Value:
    left, right, dtype = _pair(low, a, b)
    if dtype in _NARROW:
        left, right = low.graph.cast(left, "i32"), low.graph.cast(right, "i32")
    return low.op(op, left, right)


@rule
def equal(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _compared(low, "Equal", a, b)


@rule
def less(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _compared(low, "Less", a, b)


@rule
def less_equal(low: Lowering, a: Operand, b: Operand) -> ir.Value:
    return _compared(low, "LessOrEqual", a, b)


@rule
def logical_not(low: Lowering, x: Tensor) -> ir.Value:
    return low.op("Not", x)


@rule
def logical_and(low: Lowering, a: Tensor, b: Tensor) -> ir.Value:
    return low.op("And", a, b)


@rule
def logical_or(low: Lowering, a: Tensor, b: Tensor) -> ir.Value:
    return low.op("Or", a, b)


@rule
def where(low: Lowering, condition: Tensor, a: Operand, b: Operand) -> ir.Value:
    left, right, _ = _pair(low, a, b)
    return low.op("Where", condition, left, right)


@rule
def cast(low: Lowering, x: Tensor, *, dtype: DType) -> ir.Value:
    return low.graph.cast(x, dtype.value)
