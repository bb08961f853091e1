"""A product of many rows that goes where it is kept, by heads, in one Triton kernel.

Sums are in f32 whatever the element type is, and in the same order at every call.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.many_rows import Tile

__all__ = ["linear_heads"]


@triton.jit
def _heads_kernel(
    x, weight, bias, first, second,
    M, N, K, heads, span,
    BIAS: tl.constexpr, EVEN: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A tile of ROWS rows and one head of x weight^T + bias; `heads` heads go to `first`, the others to `second`."""
    # Blocks that run together share rows of x and of the weight, so that both come from the cache.
    block = tl.program_id(0)
    across, down = N // COLUMNS, tl.cdiv(M, ROWS)
    group = block // (GROUP * across)
    height = min(down - group * GROUP, GROUP)
    at_row = group * GROUP + (block % (GROUP * across)) % height
    head = (block % (GROUP * across)) // height
    rows = at_row * ROWS + tl.arange(0, ROWS)
    within = tl.arange(0, COLUMNS)
    columns = head * COLUMNS + within
    depth = tl.arange(0, DEPTH)
    # Rows past the end read the last one; they are not stored.
    rows_at = x + tl.minimum(rows, M - 1)[:, None].to(tl.int64) * K
    columns_at = weight + columns[None, :] * K
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, K, DEPTH):
        at = k + depth
        if EVEN:
            a = tl.load(rows_at + at[None, :])
            b = tl.load(columns_at + at[:, None])
        else:
            a = tl.load(rows_at + at[None, :], mask=at[None, :] < K, other=0.0)
            b = tl.load(columns_at + at[:, None], mask=at[:, None] < K, other=0.0)
        total = tl.dot(a, b, total)
    if BIAS:
        total += tl.load(bias + columns).to(tl.float32)[None, :]
    y = first
    if head >= heads:
        y = second
        head -= heads
    lines = ((rows // span) * heads + head) * span + rows % span
    places = lines[:, None].to(tl.int64) * COLUMNS + within[None, :]
    tl.store(y + places, total.to(y.dtype.element_ty), mask=(rows < M)[:, None])


def linear_heads(
    first: Tensor, second: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, *, tile: Tile | None = None
) -> None:
    """x weight^T + bias, cut in two, each half put by heads where it is kept.

    Args:
        first, second: [B, H, S, E], contiguous; E is 16 or a larger power of two.
        x: [B, S, K]; weight: [2 H E, K]; both contiguous.
        tile: rows, steps of `depth`, warps and stages; its columns are always those of a head.
    """
    _, H, S, E = first.shape
    N, K = weight.shape
    M = x.numel() // K
    t = tile or Tile(64, E, 64, 4, 4)
    _heads_kernel[(triton.cdiv(M, t.rows) * 2 * H,)](
        x, weight, bias, first, second, M, N, K, H, S,
        BIAS=bias is not None, EVEN=K % t.depth == 0,
        ROWS=t.rows, COLUMNS=E, DEPTH=t.depth, GROUP=8, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
