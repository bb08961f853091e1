"""Small definitions that use every op, with inputs: what each backend is held to the reference backend on.

Every `Case` is a root block with one entry `go`. `USED` collects the ops that the cases use, so that a test can say
which op no case covers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nest.layers import (
    Block,
    Bool,
    DType,
    Float,
    Float32,
    Int32,
    Tensor,
    abs,
    any,
    argmax,
    attention,
    batch_norm,
    broadcast_to,
    cast,
    concat,
    constant,
    conv,
    cos,
    cumsum,
    einsum,
    elaborate,
    entry,
    erf,
    exp,
    expert_linear,
    full,
    gelu,
    group_norm,
    iota,
    layer_norm,
    linear,
    log,
    logsumexp,
    max,
    max_pool,
    maximum,
    mean,
    min,
    minimum,
    pad,
    peak,
    power,
    relu,
    rms_norm,
    rope,
    rsqrt,
    scatter_set,
    sigmoid,
    silu,
    sin,
    slice,
    softmax,
    sqrt,
    stack,
    sum,
    take,
    take_along,
    tanh,
    top_k,
    where,
    while_loop,
)

__all__ = ["CASES", "Case", "used_ops"]

Array = np.ndarray[Any, Any]


@dataclass
class Case:
    """A definition, its generics, and inputs from a seeded generator."""

    root: type[Block]
    inputs: Callable[[np.random.Generator], list[Array]]
    generics: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.root.__name__


def _floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _ints(rng: np.random.Generator, high: int, *shape: int) -> Array:
    return rng.integers(0, high, shape).astype(np.int32)


class Typed(Block):
    T: DType


class Unary(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N"]
    ) -> tuple[
        Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
        Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
        Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
    ]:  # fmt: skip
        p = abs(x) + 0.5
        return (
            -x, p, exp(x), log(p), sqrt(p), rsqrt(p), sin(x), cos(x), tanh(x), erf(x), sigmoid(x), silu(x), relu(x),
            gelu(x), gelu(x, approximate=True),
        )  # fmt: skip


class Binary(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N"], y: Float[Tensor, "N"]
    ) -> tuple[
        Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
        Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
        Float[Tensor, "B N"],
    ]:  # fmt: skip
        p = abs(x) + 0.5
        return (
            x + y, 2 - x, x * y * 0.5, x / (abs(y) + 1.0), 1 / p, power(p, 1.5), power(p, y), maximum(x, y),
            minimum(x, 0.25), maximum(0, x), x - (y - x) * -1,
        )  # fmt: skip


class Integers(Typed):
    @entry
    def go(
        self, a: Int32[Tensor, "B N"], b: Int32[Tensor, "N"]
    ) -> tuple[
        Int32[Tensor, "B N"], Int32[Tensor, "B N"], Int32[Tensor, "B N"], Int32[Tensor, "B N"], Int32[Tensor, "B"],
        Int32[Tensor, "B N"], Float[Tensor, "B N"],
    ]:  # fmt: skip
        d = b + 1
        return a // d, (-a) // d, (-a) % d, a * b - 3, sum(a, 1), cumsum(a, 1), cast(a, self.T)


class Logic(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N"], y: Float[Tensor, "B N"], n: Int32[Tensor, "B N"]
    ) -> tuple[
        Bool[Tensor, "B N"], Bool[Tensor, "B N"], Bool[Tensor, "B N"], Bool[Tensor, "B N"], Bool[Tensor, "B"],
        Float[Tensor, "B N"], Float[Tensor, "B N"], Int32[Tensor, "B N"], Bool[Tensor, "B N"], Bool[Tensor, "B N"],
    ]:  # fmt: skip
        low, big = x < y, x > 0.5
        return (
            low, x <= y, ~(n == 1), (low & big) | (n != 2), any(low & big, 1), where(low, x, y), where(big, x, 0.0),
            cast(low, "i32"), y >= 0, cast(n, "bool"),
        )  # fmt: skip


class Shapes(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N 6"]
    ) -> tuple[
        Float[Tensor, "B 3 N 2"], Float[Tensor, "6 B N"], Float[Tensor, "B N 12"], Float[Tensor, "B N 2"],
        Float[Tensor, "B N 10"], Float[Tensor, "4 B N 6"], Float[Tensor, "B N 3"], Float[Tensor, "B 2 N 6"],
        Float[Tensor, "B N*6"], Float[Tensor, "B N 6"],
    ]:  # fmt: skip
        B, N, _ = x.shape
        return (
            x.reshape(B, N, 3, 2).permute(0, 2, 1, 3), x.permute(2, 0, 1), concat([x, x * 2.0], axis=-1),
            slice(x, 2, 1, 3), pad(x, 2, 1, 3, value=0.5), broadcast_to(x, (4, B, N, 6)), slice(x, 2, 1, 6, step=2),
            stack([x, -x], axis=1), x.reshape(B, N * 6), broadcast_to(slice(x, 2, 0, 1), (B, N, 6)),
        )  # fmt: skip


class Made(Typed):
    """Tensors from dims, and a dim as a number."""

    @entry
    def go(
        self, x: Float[Tensor, "B N"]
    ) -> tuple[
        Int32[Tensor, "N"],
        Float[Tensor, "B N"],
        Float32[Tensor, "2 2"],
        Int32[Tensor, "B"],
        Float[Tensor, "B N"],
    ]:
        B, N = x.shape
        table = constant([[0.5, -1.0], [2.0, 1e-3]], "f32")
        return iota(N), full((B, N), 0.25, self.T), table, full((B,), N, "i32"), x * N


class Indexing(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "V D"], i: Int32[Tensor, "B S"], j: Int32[Tensor, "V 2"], u: Float[Tensor, "V 2"]
    ) -> tuple[
        Float[Tensor, "B S D"], Float[Tensor, "V 2"], Float[Tensor, "V D"], Float[Tensor, "V B S"],
        Float[Tensor, "V 3"], Int32[Tensor, "V"], Float[Tensor, "2 D"],
    ]:  # fmt: skip
        one = constant([[1], [0]], "i32")
        return (
            take(x, i), take_along(x, j, axis=1), scatter_set(x, j, u, axis=1), take(x, i, axis=1),
            take(x, constant([2, 0, 1], "i32"), axis=1), argmax(x), take_along(slice(x, 0, 0, 2), one, axis=0),
        )  # fmt: skip


class Products(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N 4"], w: Float[Tensor, "6 4"], b: Float[Tensor, "6"],
        e: Float[Tensor, "3 5 4"], i: Int32[Tensor, "B"],
    ) -> tuple[
        Float[Tensor, "B N 6"], Float[Tensor, "B N 6"], Float[Tensor, "B N N"], Float[Tensor, "B 5"],
        Float[Tensor, "N 4"],
    ]:  # fmt: skip
        B = x.shape[0]
        first = slice(x, 1, 0, 1).reshape(B, 4)
        return (
            linear(x, w, b), linear(x, w), einsum("bnd,bmd->bnm", x, x), expert_linear(first, e, i),
            einsum("bnd->nd", x),
        )  # fmt: skip


class Convolution(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B 4 L"], w: Float[Tensor, "6 4 3"], b: Float[Tensor, "6"], g: Float[Tensor, "6 2 3"],
        y: Float[Tensor, "B 3 9 7"], k: Float[Tensor, "5 3 3 2"],
    ) -> tuple[
        Float[Tensor, "B 6 L"], Float[Tensor, "B 6 (L-1)//2+1"], Float[Tensor, "B 6 L-2"], Float[Tensor, "B 5 5 8"],
        Float[Tensor, "B 3 5 4"],
    ]:  # fmt: skip
        return (
            conv(x, w, b, padding=1), conv(x, w, padding=1, stride=2), conv(x, g, groups=2),
            conv(y, k, stride=(2, 1), padding=(1, 1)), max_pool(y, kernel=3, stride=2, padding=1),
        )  # fmt: skip


class Norms(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N 6"], w: Float[Tensor, "6"], b: Float[Tensor, "6"], y: Float[Tensor, "B 6 L"]
    ) -> tuple[
        Float[Tensor, "B N 6"], Float[Tensor, "B N 6"], Float[Tensor, "B N 6"], Float[Tensor, "B N 6"],
        Float[Tensor, "B 6 L"], Float[Tensor, "B 6 L"],
    ]:  # fmt: skip
        variance = b * b + 0.5
        return (
            layer_norm(x, w, b), layer_norm(x, eps=1e-3), rms_norm(x, w), rms_norm(x),
            group_norm(y, w, b, groups=3), batch_norm(y, b, variance, w, b),
        )  # fmt: skip


class Reductions(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B N 5"]
    ) -> tuple[
        Float[Tensor, "B N"], Float[Tensor, "B 1 1"], Float[Tensor, "N 5"], Float[Tensor, "B N"], Float[Tensor, "B 5"],
        Float[Tensor, "B N 5"], Float[Tensor, "B N 5"], Float[Tensor, "B N 5"], Float[Tensor, "B N 2"],
        Int32[Tensor, "B N 2"], Int32[Tensor, "B 5"], Int32[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
        Int32[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"],
    ]:  # fmt: skip
        values, indices = top_k(x, 2)
        return (
            sum(x, 2), mean(x, (1, 2), keepdims=True), max(x, 0), min(x, -1), logsumexp(x, 1), softmax(x),
            softmax(x, axis=1), cumsum(x, 1), values, indices, argmax(x, axis=1), *peak(x), *peak(x, x * -1.5),
        )  # fmt: skip


class TopOfMany(Typed):
    """Few of many, among which there are equals: small integers, both zeros."""

    @entry
    def go(self, x: Float[Tensor, "B 200"]) -> tuple[Float[Tensor, "B 5"], Int32[Tensor, "B 5"]]:
        return top_k(x, 5)


class Attention(Typed):
    """Each of attention's options; q has two heads for each of k."""

    @entry
    def go(
        self, q: Float[Tensor, "B 4 Q 8"], k: Float[Tensor, "B 2 K 8"], v: Float[Tensor, "B 2 K 6"],
        pos: Int32[Tensor, "B"], length: Int32[Tensor, "B"], bias: Float[Tensor, "1 4 Q K"], sinks: Float[Tensor, "4"],
    ) -> tuple[
        Float[Tensor, "B 4 Q 6"], Float[Tensor, "B 4 Q 6"], Float[Tensor, "B 4 Q 6"], Float[Tensor, "B 4 Q 6"],
        Float[Tensor, "B 4 Q 6"], Float[Tensor, "B 4 Q 6"], Float[Tensor, "B 4 Q 6"], Float[Tensor, "B 4 Q 6"],
        Float[Tensor, "B 4 Q 6"],
    ]:  # fmt: skip
        mask = bias > 0.0
        return (
            attention(q, k, v), attention(q, k, v, causal=True), attention(q, k, v, pos, causal=True),
            attention(q, k, v, pos, causal=True, window=2), attention(q, k, v, kv_len=length),
            attention(q, k, v, mask=mask), attention(q, k, v, bias=bias, scale=0.3),
            attention(q, k, v, pos, causal=True, softcap=1.5, sinks=sinks),
            attention(q, k, v, pos, causal=True, mask=mask),
        )  # fmt: skip


class Masked(Typed):
    """Rows that see no key give zeros."""

    @entry
    def go(
        self, q: Float[Tensor, "B 2 Q 4"], k: Float[Tensor, "B 2 K 4"], length: Int32[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B 2 Q 4"], Float[Tensor, "B 2 Q 4"]]:
        nothing = full((1, 1, 1, 1), False, "bool")
        return attention(q, k, k, kv_len=length), attention(q, k, k, mask=nothing)


class Rotary(Typed):
    @entry
    def go(
        self, x: Float[Tensor, "B 2 S 8"], pos: Int32[Tensor, "B"], each: Int32[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B 2 S 8"], Float[Tensor, "B 2 S 8"], Float[Tensor, "B 2 S 8"]]:
        frequencies, few = constant([1.0, 0.1, 0.01, 0.001], "f32"), constant([1.0, 0.1, 0.01], "f32")
        return (
            rope(x, pos, frequencies),
            rope(x, each, frequencies, layout="interleaved"),
            rope(x, pos, few, scale=1.25),
        )


def _below(block: Any, n: Tensor, x: Tensor) -> Tensor:
    return (n < 5).reshape()


def _double(block: Any, n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return n + 1, x * block.rate + 1.0


class Loops(Block):
    T: DType
    rate: Any = None

    def build(self) -> None:
        self.rate = 0.5

    @entry
    def go(
        self, x: Float[Tensor, "B N"]
    ) -> tuple[Int32[Tensor, ""], Float[Tensor, "B N"], Float[Tensor, "B N"]]:
        zero = full((), 0, "i32")
        n, y = while_loop(self, _below, _double, [zero, x], max_trips=100)
        _, short = while_loop(self, _below, _double, [zero, x], max_trips=3)
        return n, y, short


def _with_equals(rng: np.random.Generator) -> Array:
    """Rows whose largest are several of 3; both zeros above what is negative; things left out; all the same."""
    rows = np.stack(
        [rng.integers(-3, 4, 200), -1.0 * (rng.random(200) > 0.9), rng.standard_normal(200), np.ones(200)]
    )
    rows[1] *= np.where(rows[1] == 0, rng.choice([-1.0, 1.0], 200), 1)
    rows[2, [4, 9]], rows[2, 20:] = 7, -np.inf
    return np.asarray(np.round(rows * 4) / 4, np.float32)


CASES = [
    Case(Unary, lambda r: [_floats(r, 2, 5)]),
    Case(Binary, lambda r: [_floats(r, 2, 5), _floats(r, 5)]),
    Case(Integers, lambda r: [_ints(r, 20, 2, 5), _ints(r, 4, 5)]),
    Case(Logic, lambda r: [_floats(r, 2, 5), _floats(r, 2, 5), _ints(r, 4, 2, 5)]),
    Case(Shapes, lambda r: [_floats(r, 2, 5, 6)]),
    Case(Made, lambda r: [_floats(r, 2, 5)]),
    Case(Indexing, lambda r: [_floats(r, 4, 7), _ints(r, 4, 2, 3), np.array([[0, 3], [6, 1], [2, 4], [5, 0]], np.int32),
                              _floats(r, 4, 2)]),
    Case(Products, lambda r: [_floats(r, 2, 5, 4), _floats(r, 6, 4), _floats(r, 6), _floats(r, 3, 5, 4),
                              _ints(r, 3, 2)]),
    Case(Convolution, lambda r: [_floats(r, 2, 4, 11), _floats(r, 6, 4, 3), _floats(r, 6), _floats(r, 6, 2, 3),
                                 _floats(r, 2, 3, 9, 7), _floats(r, 5, 3, 3, 2)]),
    Case(Norms, lambda r: [_floats(r, 2, 5, 6), _floats(r, 6), _floats(r, 6), _floats(r, 2, 6, 7)]),
    Case(Reductions, lambda r: [_floats(r, 2, 4, 5)]),
    Case(TopOfMany, lambda r: [_with_equals(r)]),
    Case(Attention, lambda r: [_floats(r, 3, 4, 3, 8), _floats(r, 3, 2, 7, 8), _floats(r, 3, 2, 7, 6),
                               np.array([0, 2, 4], np.int32), np.array([7, 1, 5], np.int32), _floats(r, 1, 4, 3, 7),
                               _floats(r, 4)]),
    Case(Masked, lambda r: [_floats(r, 2, 2, 3, 4), _floats(r, 2, 2, 5, 4), np.array([0, 3], np.int32)]),
    Case(Rotary, lambda r: [_floats(r, 2, 2, 3, 8), np.array([0, 9], np.int32), _ints(r, 50, 2, 3)]),
    Case(Loops, lambda r: [_floats(r, 2, 3)]),
]  # fmt: skip


def used_ops() -> set[str]:
    """The ops in the programs of all cases."""
    used: set[str] = set()
    for case in CASES:
        for function in elaborate(case.root, T="f32", **case.generics).functions():
            used |= {node.op for node in function.nodes}
    return used
