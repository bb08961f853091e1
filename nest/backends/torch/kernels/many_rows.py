"""Norms of many rows, and what kernels share: norms, activations, tiles. Sums are in f32 whatever the element type."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["ACTIVATIONS", "KINDS", "Norm", "Tile", "activated", "norm_rows"]


class Norm(NamedTuple):
    """A norm over the last axis. `kind` is `layer` or `rms`; weight and bias are [K], or None."""

    kind: str
    weight: Tensor | None
    bias: Tensor | None
    eps: float


class Tile(NamedTuple):
    """What one block makes, rows and columns, in steps of `depth`; its warps and the loads that are under way."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


KINDS = {"layer": 1, "rms": 2}
ACTIVATIONS = {None: 0, "gelu": 1, "gelu_tanh": 2, "silu": 3, "relu": 4}


@triton.jit
def activated(y, ACTIVATION: tl.constexpr):
    """The activation of numbers in f32. gelu is the error function's form, gelu_tanh its approximation."""
    if ACTIVATION == 1:
        # The complementary error function by Abramowitz and Stegun, 7.1.26: within 1.5e-7, a fraction of an erf's time.
        size = tl.minimum(tl.abs(y), 30.0)
        t = 1.0 / (1.0 + 0.3275911 * 0.7071067811865476 * size)
        series = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
        series = t * (0.254829592 + t * (-0.284496736 + t * series))
        y = tl.where(y < 0.0, 0.0, y) - 0.5 * size * series * tl.exp(-0.5 * size * size)
    elif ACTIVATION == 2:
        inner = 0.7978845608028654 * (y + 0.044715 * y * y * y)
        y = y * tl.sigmoid(2.0 * inner)
    elif ACTIVATION == 3:
        y = y * tl.sigmoid(y)
    elif ACTIVATION == 4:
        y = tl.maximum(y, 0.0)
    return y


@triton.jit
def _norm_kernel(
    x, weight, bias, y, M, K, eps,
    KIND: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """ROWS rows of K elements; WIDTH is the power of two that is no less than K."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, WIDTH)
    inside = (rows < M)[:, None] & (at < K)[None, :]
    places = rows[:, None].to(tl.int64) * K + at[None, :]
    h = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    if KIND == 1:
        h = tl.where(inside, h - (tl.sum(h, 1) / K)[:, None], 0.0)
    h *= tl.rsqrt(tl.sum(h * h, 1) / K + eps)[:, None]
    if WEIGHT:
        h *= tl.load(weight + at, mask=at < K, other=0.0).to(tl.float32)[None, :]
    if BIAS:
        h += tl.load(bias + at, mask=at < K, other=0.0).to(tl.float32)[None, :]
    tl.store(y + places, h.to(y.dtype.element_ty), mask=inside)


def norm_rows(x: Tensor, norm: Norm) -> Tensor:
    """The norm of the last axis of x [..., K], with sums in f32."""
    K = x.shape[-1]
    M = x.numel() // K
    x = x.contiguous()
    y = torch.empty_like(x)
    width = triton.next_power_of_2(K)
    height = max(1, min(4, 4096 // width))
    _norm_kernel[(triton.cdiv(M, height),)](
        x, norm.weight, norm.bias, y, M, K, norm.eps,
        KIND=KINDS[norm.kind], WEIGHT=norm.weight is not None, BIAS=norm.bias is not None,
        ROWS=height, WIDTH=width, num_warps=4 if width < 8192 else 16,
    )  # fmt: skip
    return y
