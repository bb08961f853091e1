"""Convolutions over time as matrix products, in one Triton kernel with bias and activation."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.many_rows import ACTIVATIONS, Tile, activated

__all__ = ["conv_rows"]

_SMALL, _LARGE = Tile(64, 64, 64, 4, 4), Tile(128, 128, 64, 8, 3)
_MANY = 128 * 128 * 100
"""Of elements: fewer, and large tiles leave processors idle."""


@triton.jit
def _conv_kernel(
    x, weight, bias, y,
    T, OUT, C, N, K, first,
    STRIDE: tl.constexpr, BIAS: tl.constexpr, ACTIVATION: tl.constexpr, EVEN: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile [ROWS, COLUMNS] of activation(conv(x) + bias).

    The elements that one output sees follow each other in memory, channel by channel and then frame by frame, from
    (t STRIDE - padding) C on; what is outside of the T frames is zero, so that no copy with a border is made.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    x += tl.program_id(2).to(tl.int64) * T * C
    y += tl.program_id(2).to(tl.int64) * OUT * N
    starts = (rows * STRIDE - first) * C
    columns_at = weight + tl.minimum(columns, N - 1)[None, :] * K
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, K, DEPTH):
        at = k + depth
        from_ = starts[:, None] + at[None, :]
        seen = (from_ >= 0) & (from_ < T * C)
        if EVEN:
            b = tl.load(columns_at + at[:, None])
        else:
            seen = seen & (at[None, :] < K)
            b = tl.load(columns_at + at[:, None], mask=at[:, None] < K, other=0.0)
        a = tl.load(x + from_, mask=seen, other=0.0)
        total = tl.dot(a, b, total)
    if BIAS:
        total += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    stored = (rows < OUT)[:, None] & (columns < N)[None, :]
    places = rows[:, None] * N + columns[None, :]
    tl.store(y + places, total.to(y.dtype.element_ty), mask=stored)


def conv_rows(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    activation: str | None = None,
    tile: Tile | None = None,
) -> Tensor:
    """activation(conv(x) + bias), with time before channels: [B, T, C] to [B, T', N].

    Args:
        x: [B, T, C], contiguous.
        weight: [N, taps, C], contiguous.
    """
    B, T, C = x.shape
    N, taps, _ = weight.shape
    out = (T + 2 * padding - taps) // stride + 1
    y = torch.empty(B, out, N, dtype=x.dtype, device=x.device)
    K = taps * C
    t = tile or (_LARGE if B * out * N >= _MANY else _SMALL)
    _conv_kernel[(triton.cdiv(out, t.rows), triton.cdiv(N, t.columns), B)](
        x, weight, bias, y, T, out, C, N, K, padding,
        STRIDE=stride, BIAS=bias is not None, ACTIVATION=ACTIVATIONS[activation], EVEN=K % t.depth == 0,
        ROWS=t.rows, COLUMNS=t.columns, DEPTH=t.depth, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
    return y
