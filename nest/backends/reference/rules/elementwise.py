"""Elementwise ops. A number beside a tensor takes the tensor's element type before anything is computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nest.backends.reference.rules._erf import erf as _erf
from nest.backends.reference.rules._registry import Array, rule, wide

__all__: list[str] = []

Operand = Array | bool | int | float


def _pair(a: Operand, b: Operand) -> tuple[Array, Array]:
    """Both operands as arrays of the tensor's type."""
    dtype = next(x.dtype for x in (a, b) if isinstance(x, np.ndarray | np.generic))
    return np.asarray(a, dtype=dtype), np.asarray(b, dtype=dtype)


@rule
def neg(x: Array) -> Array:
    return np.negative(x)


@rule
def abs_(x: Array) -> Array:
    return np.absolute(x)


@rule
def exp(x: Array) -> Any:
    return np.exp(x)


@rule
def log(x: Array) -> Any:
    return np.log(x)


@rule
def sqrt(x: Array) -> Any:
    return np.sqrt(x)


@rule
def rsqrt(x: Array) -> Any:
    return np.reciprocal(np.sqrt(wide(x))).astype(x.dtype)


@rule
def sin(x: Array) -> Any:
    return np.sin(x)


@rule
def cos(x: Array) -> Any:
    return np.cos(x)


@rule
def tanh(x: Array) -> Any:
    return np.tanh(x)


@rule
def erf(x: Array) -> Array:
    return _erf(x)


def _sigmoid(x: Array) -> Array:
    """1/(1+e^-x), or e^x/(1+e^x) for negative x: neither exponential overflows."""
    decay = np.exp(-np.abs(x))
    one = np.ones((), x.dtype)
    result: Array = np.where(x >= 0, one, decay) / (one + decay)
    return result


@rule
def sigmoid(x: Array) -> Array:
    return _sigmoid(wide(x)).astype(x.dtype)


@rule
def silu(x: Array) -> Array:
    y = wide(x)
    return (y * _sigmoid(y)).astype(x.dtype)


@rule
def relu(x: Array) -> Any:
    return np.maximum(x, np.zeros((), x.dtype))


@rule
def gelu(x: Array, *, approximate: bool) -> Array:
    y = wide(x)
    if approximate:
        inner = np.tanh(y.dtype.type(math.sqrt(2.0 / math.pi)) * (y + y.dtype.type(0.044715) * y * y * y))
    else:
        inner = _erf(y * y.dtype.type(math.sqrt(0.5)))
    result: Array = y.dtype.type(0.5) * y * (y.dtype.type(1.0) + inner)
    return result.astype(x.dtype)


@rule
def add(a: Operand, b: Operand) -> Any:
    return np.add(*_pair(a, b))


@rule
def sub(a: Operand, b: Operand) -> Any:
    return np.subtract(*_pair(a, b))


@rule
def mul(a: Operand, b: Operand) -> Any:
    return np.multiply(*_pair(a, b))


@rule
def div(a: Operand, b: Operand) -> Any:
    return np.divide(*_pair(a, b))


@rule
def floordiv(a: Operand, b: Operand) -> Any:
    return np.floor_divide(*_pair(a, b))


@rule
def mod(a: Operand, b: Operand) -> Any:
    return np.mod(*_pair(a, b))


@rule
def power(a: Operand, b: Operand) -> Any:
    return np.power(*_pair(a, b))


@rule
def maximum(a: Operand, b: Operand) -> Any:
    return np.maximum(*_pair(a, b))


@rule
def minimum(a: Operand, b: Operand) -> Any:
    return np.minimum(*_pair(a, b))


@rule
def equal(a: Operand, b: Operand) -> Any:
    return np.equal(*_pair(a, b))


@rule
def less(a: Operand, b: Operand) -> Any:
    return np.less(*_pair(a, b))


@rule
def less_equal(a: Operand, b: Operand) -> Any:
    return np.less_equal(*_pair(a, b))


@rule
def logical_not(x: Array) -> Any:
    return np.logical_not(x)


@rule
def logical_and(a: Array, b: Array) -> Any:
    return np.logical_and(a, b)


@rule
def logical_or(a: Array, b: Array) -> Any:
    return np.logical_or(a, b)


@rule
def where(condition: Array, a: Operand, b: Operand) -> Array:
    return np.where(condition, *_pair(a, b))


@rule
def cast(x: Array, *, dtype: np.dtype[Any]) -> Array:
    return x.astype(dtype)
