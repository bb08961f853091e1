"""Elementwise ops. A number beside a tensor takes the tensor's element type, as jax's weak types do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import RULES, rule

__all__: list[str] = []

Operand = Array | bool | int | float

RULES.update(
    neg=jnp.negative,
    abs=jnp.abs,
    exp=jnp.exp,
    log=jnp.log,
    sqrt=jnp.sqrt,
    sin=jnp.sin,
    cos=jnp.cos,
    tanh=jnp.tanh,
    relu=jax.nn.relu,
    logical_not=jnp.logical_not,
    logical_and=jnp.logical_and,
    logical_or=jnp.logical_or,
    where=jnp.where,
)


def _in_f32(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that loses digits in half precision, computed in f32 and rounded once."""

    def run(x: Array) -> Array:
        return function(x.astype(jnp.float32)).astype(x.dtype)

    return run


RULES.update(
    rsqrt=_in_f32(lax.rsqrt),
    erf=_in_f32(lax.erf),
    sigmoid=_in_f32(jax.nn.sigmoid),
    silu=_in_f32(jax.nn.silu),
)


@rule
def gelu(x: Array, *, approximate: bool = False) -> Array:
    """x * Phi(x) by the error function, or its tanh form; in f32."""
    return jax.nn.gelu(x.astype(jnp.float32), approximate=approximate).astype(x.dtype)


def _pair(function: Callable[[Any, Any], Array]) -> Callable[[Operand, Operand], Array]:
    """A function of two operands, one of which may be a number."""

    def run(a: Operand, b: Operand) -> Array:
        dtype = next(x.dtype for x in (a, b) if hasattr(x, "dtype"))
        return function(jnp.asarray(a, dtype), jnp.asarray(b, dtype))

    return run


RULES.update(
    add=_pair(jnp.add),
    sub=_pair(jnp.subtract),
    mul=_pair(jnp.multiply),
    div=_pair(jnp.divide),
    floordiv=_pair(jnp.floor_divide),
    mod=_pair(jnp.mod),
    power=_pair(jnp.power),
    maximum=_pair(jnp.maximum),
    minimum=_pair(jnp.minimum),
    equal=_pair(jnp.equal),
    less=_pair(jnp.less),
    less_equal=_pair(jnp.less_equal),
)


@rule
def cast(x: Array, *, dtype: Any) -> Array:
    return x.astype(dtype)
