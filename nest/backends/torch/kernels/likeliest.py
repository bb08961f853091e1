"""The likeliest token of a step in two Triton kernels, norm, head and largest element; and a token's embedding."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.few_rows import Slab, moments, normalized, row_statistics
from nest.backends.torch.kernels.launching import launch_options, wait
from nest.backends.torch.kernels.many_rows import KINDS, Norm

__all__ = ["embed", "likeliest"]


@triton.jit
def _block_peak(logits, columns, N, peaks, masses, places, at):
    """Keep the largest of a block's logits, the first index of it, and the sum of exponentials of what is left."""
    logits = tl.where(columns < N, logits, float("-inf"))
    peak = tl.max(logits, 0)
    first = tl.min(tl.where((logits == peak) & (columns < N), columns, N - 1), 0)
    mass = tl.sum(tl.where(logits > float("-inf"), tl.exp(logits - peak), 0.0), 0)
    tl.store(peaks + at, peak)
    tl.store(masses + at, mass)
    tl.store(places + at, first)


@triton.jit
def _head_row_kernel(
    x, weight, bias, norm_weight, norm_bias, peaks, masses, places,
    N, eps, bias_row,
    K: tl.constexpr, KIND: tl.constexpr, NORM_WEIGHT: tl.constexpr, NORM_BIAS: tl.constexpr, BIAS: tl.constexpr,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, STREAM: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """norm(x) weight^T + bias of one row, COLUMNS elements a block, of which only the largest is kept."""
    row = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    inside = (columns < N)[:, None]
    held = weight + columns.to(tl.int64)[:, None] * K + depth[None, :]
    if STREAM:
        w = tl.load(held, mask=inside & (depth < K)[None, :], other=0.0, eviction_policy="evict_first")
    else:
        w = tl.load(held, mask=inside & (depth < K)[None, :], other=0.0)
    wait(PDL)
    if KIND:
        mean, scale = moments(x + row * K, K, eps, KIND, WIDTH)
    total = tl.zeros([COLUMNS, DEPTH], tl.float32)
    for k in tl.static_range(0, K, DEPTH):
        at = k + depth
        seen = at < K
        h = tl.load(x + row * K + at, mask=seen, other=0.0).to(tl.float32)
        if KIND:
            h = normalized(h, at, seen, mean, scale, norm_weight, norm_bias, NORM_WEIGHT, NORM_BIAS)
        if k > 0:
            if STREAM:
                w = tl.load(held + k, mask=inside & seen[None, :], other=0.0, eviction_policy="evict_first")
            else:
                w = tl.load(held + k, mask=inside & seen[None, :], other=0.0)
        total += w.to(tl.float32) * h[None, :]
    logits = tl.sum(total, 1)
    if BIAS:
        logits += tl.load(bias + row * bias_row + columns, mask=columns < N, other=0.0).to(tl.float32)
    _block_peak(logits, columns, N, peaks, masses, places, row * tl.num_programs(0) + tl.program_id(0))


@triton.jit
def _head_rows_kernel(
    x, weight, bias, norm_weight, norm_bias, peaks, masses, places,
    M, N, K, eps, bias_row,
    KIND: tl.constexpr, NORM_WEIGHT: tl.constexpr, NORM_BIAS: tl.constexpr, BIAS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """The same of ROWS rows a block, through the matrix unit."""
    wait(PDL)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    rows_at = x + tl.minimum(rows, M - 1)[:, None] * K
    columns_at = weight + tl.minimum(columns, N - 1).to(tl.int64)[:, None] * K
    if KIND:
        mean, scale = row_statistics(rows_at, K, eps, KIND, ROWS, DEPTH)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, K, DEPTH):
        at = k + depth
        seen = (at < K)[None, :]
        h = tl.load(rows_at + at[None, :], mask=seen, other=0.0)
        if KIND:
            n = (h.to(tl.float32) - mean[:, None]) * scale[:, None]
            if NORM_WEIGHT:
                n *= tl.load(norm_weight + at, mask=at < K, other=0.0).to(tl.float32)[None, :]
            if NORM_BIAS:
                n += tl.load(norm_bias + at, mask=at < K, other=0.0).to(tl.float32)[None, :]
            h = tl.where(seen, n, 0.0).to(h.dtype)
        w = tl.load(columns_at + at[None, :], mask=seen, other=0.0)
        total = tl.dot(h, tl.trans(w), total, input_precision="ieee")
    inside = (columns < N)[None, :]
    if BIAS:
        here = (rows < M)[:, None] & inside
        total += tl.load(bias + rows[:, None] * bias_row + columns[None, :], mask=here, other=0.0).to(
            tl.float32
        )
    total = tl.where(inside, total, float("-inf"))
    peak = tl.max(total, 1)
    first = tl.min(tl.where((total == peak[:, None]) & inside, columns[None, :], N - 1), 1)
    mass = tl.sum(tl.where(total > float("-inf"), tl.exp(total - peak[:, None]), 0.0), 1)
    at = rows * tl.num_programs(0) + tl.program_id(0)
    tl.store(peaks + at, peak, mask=rows < M)
    tl.store(masses + at, mass, mask=rows < M)
    tl.store(places + at, first, mask=rows < M)


@triton.jit
def _likeliest_kernel(
    peaks, masses, places, index, largest, sums, blocks, N, BLOCKS: tl.constexpr, PDL: tl.constexpr
):
    """The largest of a row's blocks; of equals, the first."""
    wait(PDL)
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCKS)
    there = at < blocks
    p = tl.load(peaks + row * blocks + at, mask=there, other=float("-inf"))
    m = tl.load(masses + row * blocks + at, mask=there, other=0.0)
    i = tl.load(places + row * blocks + at, mask=there, other=0)
    peak = tl.max(p, 0)
    first = tl.min(tl.where((p == peak) & there, i, N - 1), 0)
    mass = tl.sum(tl.where(p > float("-inf"), m * tl.exp(p - peak), 0.0), 0)
    tl.store(index + row, first)
    tl.store(largest + row, peak)
    tl.store(sums + row, mass)


def likeliest(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    norm: Norm | None = None,
    slab: Slab | None = None,
    stream: bool | None = None,
    pdl: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest element of y = norm(x) weight^T + bias: its first index, itself, and sum(exp(y - itself)).

    Args:
        x: [..., K], contiguous.
        weight: [N, K], contiguous.
        bias: [N], or [..., N] of each row.
        stream: read the weight so that it leaves the cache before the layers' weights do; by the shape if left out.

    Returns:
        i32, f32 and f32, each [...]. Products are not rounded to x's type in between.
    """
    N, K = weight.shape
    lead = x.shape[:-1]
    M = lead.numel()
    s = slab or head_slab(M, N, K)
    blocks = triton.cdiv(N, s.columns)
    peaks, masses = torch.empty(2, M, blocks, dtype=torch.float32, device=x.device)
    places = torch.empty(M, blocks, dtype=torch.int32, device=x.device)
    of_norm, eps = ((None, None), 0.0) if norm is None else (norm[1:3], norm.eps)
    flags = {
        "KIND": 0 if norm is None else KINDS[norm.kind],
        "NORM_WEIGHT": norm is not None and norm.weight is not None,
        "NORM_BIAS": norm is not None and norm.bias is not None,
        "BIAS": bias is not None, "COLUMNS": s.columns, "DEPTH": s.depth, "num_warps": s.warps,
    }  # fmt: skip
    bias_row = 0 if bias is None or bias.numel() == N else N
    if M == 1:
        _head_row_kernel[(blocks, 1)](
            x, weight, bias, *of_norm, peaks, masses, places, N, eps, bias_row,
            K=K, WIDTH=triton.next_power_of_2(K), STREAM=s.depth <= 128 if stream is None else stream, **flags,
            **launch_options(pdl),
        )  # fmt: skip
    else:
        rows = min(64, max(16, triton.next_power_of_2(M)))
        _head_rows_kernel[(blocks, triton.cdiv(M, rows))](
            x, weight, bias, *of_norm, peaks, masses, places, M, N, K, eps, bias_row,
            ROWS=rows, num_stages=s.stages, **flags, **launch_options(pdl),
        )  # fmt: skip
    index = torch.empty(lead, dtype=torch.int32, device=x.device)
    largest, sums = (torch.empty(lead, dtype=torch.float32, device=x.device) for _ in range(2))
    _likeliest_kernel[(M,)](
        peaks, masses, places, index, largest, sums, blocks, N, BLOCKS=triton.next_power_of_2(blocks), num_warps=8,
        **launch_options(pdl),
    )  # fmt: skip
    return index, largest, sums


def head_slab(M: int, N: int, K: int) -> Slab:
    """What a block of the head reads."""
    if M > 1:
        return Slab(64, 64, 4, 4)
    return Slab(16, 256, 4) if K % 256 == 0 else Slab(16 if K <= 512 else 32, 128, 4)


@triton.jit
def _embed_kernel(
    ids, table, positions, pos, y, N, P, D, S, POSITIONS: tl.constexpr, WIDTH: tl.constexpr, PDL: tl.constexpr
):  # fmt: skip
    """Row ids[i] of a table, with that of its position added."""
    wait(PDL)
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    id_ = tl.minimum(tl.maximum(tl.load(ids + row), 0), N - 1).to(tl.int64)
    x = tl.load(table + id_ * D + at, mask=at < D)
    if POSITIONS:
        slot = tl.load(pos + row // S) + row % S
        slot = tl.minimum(tl.maximum(slot, 0), P - 1).to(tl.int64)
        x = (x.to(tl.float32) + tl.load(positions + slot * D + at, mask=at < D).to(tl.float32)).to(x.dtype)
    tl.store(y + row * D + at, x, mask=at < D)


def embed(
    ids: Tensor,
    table: Tensor,
    positions: Tensor | None = None,
    pos: Tensor | None = None,
    *,
    pdl: bool | None = None,
) -> Tensor:
    """Rows of a table [N, D] by ids [B, S], with rows pos + 0, 1, ... of `positions` [P, D] added; [B, S, D]."""
    B, S = ids.shape
    N, D = table.shape
    y = torch.empty(B, S, D, dtype=table.dtype, device=table.device)
    _embed_kernel[(B * S, triton.cdiv(D, 512))](
        ids, table, positions, pos, y, N, 0 if positions is None else positions.shape[0], D, S,
        POSITIONS=positions is not None, WIDTH=512, num_warps=4, **launch_options(pdl),
    )  # fmt: skip
    return y
