"""Linear layers over few rows as one Triton kernel: norm, product, bias, activation, gate and residual.

A row is a vector: each block reads some rows of the weight once, in wide loads and before the kernel ahead has ended,
and the vector, which is small, as often as there are blocks. More than four go through the matrix unit, sixteen at
least. The sums of a row are always in the same order, so the result is the same at every call.
"""

# Tuples grow in kernels, and Triton puts none together by unpacking.
# mypy: disable-error-code="assignment"
# ruff: noqa: RUF005

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.launching import launch_options, wait
from nest.backends.torch.kernels.many_rows import ACTIVATIONS, KINDS, Norm, activated
from nest.backends.torch.kernels.parts import Parts, combined

__all__ = ["Slab", "linear_few", "slab_for"]

_VECTORS = 4
"""So few rows are products of a vector each, by a block that holds its part of the weight."""


class Slab(NamedTuple):
    """What one block reads of a weight: `columns` of its rows, `depth` elements at a time; its warps and stages."""

    columns: int
    depth: int
    warps: int
    stages: int = 2


@triton.jit
def moments(row_at, K, eps, KIND: tl.constexpr, WIDTH: tl.constexpr):
    """Mean (zero for rms) and 1/deviation of one row of K elements, in f32; WIDTH is no less than K."""
    width = tl.arange(0, WIDTH)
    h = tl.load(row_at + width, mask=width < K, other=0.0).to(tl.float32)
    mean = 0.0
    if KIND == 1:
        mean = tl.sum(h, 0) / K
        h = tl.where(width < K, h - mean, 0.0)
    return mean, tl.rsqrt(tl.sum(h * h, 0) / K + eps)


@triton.jit
def normalized(h, at, seen, mean, scale, norm_weight, norm_bias, WEIGHT: tl.constexpr, BIAS: tl.constexpr):
    """Elements `at` of a row, in f32 and zero where they are not seen, after its norm."""
    h = tl.where(seen, (h - mean) * scale, 0.0)
    if WEIGHT:
        h *= tl.load(norm_weight + at, mask=seen, other=0.0).to(tl.float32)
    if BIAS:
        h += tl.load(norm_bias + at, mask=seen, other=0.0).to(tl.float32)
    return h


@triton.jit
def _row_kernel(
    x, lse, weight, bias, norm_weight, norm_bias, residual, y,
    N, eps, rows,
    K: tl.constexpr, KIND: tl.constexpr, NORM_WEIGHT: tl.constexpr, NORM_BIAS: tl.constexpr, BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr, GATED: tl.constexpr, RESIDUAL: tl.constexpr,
    SPLITS: tl.constexpr, SPLITS_UP: tl.constexpr, E: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """activation(norm(x) weight^T + bias) + residual of ROWS rows, COLUMNS elements a block; x may be parts."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    inside = (columns < N)[:, None]
    held = weight + columns.to(tl.int64)[:, None] * K + depth[None, :]
    gate_to_up = N.to(tl.int64) * K
    # Weights do not depend on the kernel ahead, whose end is waited for after they were asked for.
    weights, ups, scales, shifts = (), (), (), ()
    for k in tl.static_range(0, K, DEPTH):
        seen = k + depth < K
        weights = weights + (tl.load(held + k, mask=inside & seen[None, :], other=0.0),)
        if GATED:
            ups = ups + (tl.load(held + gate_to_up + k, mask=inside & seen[None, :], other=0.0),)
        if NORM_WEIGHT:
            scales = scales + (tl.load(norm_weight + k + depth, mask=seen, other=0.0),)
        if NORM_BIAS:
            shifts = shifts + (tl.load(norm_bias + k + depth, mask=seen, other=0.0),)
    if BIAS:
        added = tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)
        if GATED:
            added_up = tl.load(bias + N + columns, mask=columns < N, other=0.0).to(tl.float32)
    wait(PDL)
    # Rows one after the other: the weights stay where they are.
    for r in tl.static_range(ROWS):
        row = tl.program_id(1).to(tl.int64) * ROWS + r
        if RESIDUAL:
            kept = tl.load(residual + row * N + columns, mask=columns < N, other=0.0).to(tl.float32)
        if KIND:
            mean, scale = moments(x + row * K, K, eps, KIND, WIDTH)
        total = tl.zeros([COLUMNS, DEPTH], tl.float32)
        if GATED:
            total_up = tl.zeros([COLUMNS, DEPTH], tl.float32)
        for k in tl.static_range(0, K, DEPTH):
            at = k + depth
            seen = at < K
            if SPLITS:
                heads = combined(x, lse, row, rows, k // E, SPLITS, SPLITS_UP, K // E, DEPTH // E, E, E)
                h = tl.reshape(heads, [DEPTH])
            else:
                h = tl.load(x + row * K + at, mask=seen, other=0.0).to(tl.float32)
            if KIND:
                h = tl.where(seen, (h - mean) * scale, 0.0)
            if NORM_WEIGHT:
                h *= scales[k // DEPTH].to(tl.float32)
            if NORM_BIAS:
                h += shifts[k // DEPTH].to(tl.float32)
            total += weights[k // DEPTH].to(tl.float32) * h[None, :]
            if GATED:
                total_up += ups[k // DEPTH].to(tl.float32) * h[None, :]
        result = tl.sum(total, 1)
        if BIAS:
            result += added
        result = activated(result, ACTIVATION)
        if GATED:
            up = tl.sum(total_up, 1)
            if BIAS:
                up += added_up
            result *= up
        if RESIDUAL:
            result += kept
        tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=columns < N)


@triton.jit
def row_statistics(rows_at, K, eps, KIND: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    """Mean (zero for rms) and 1/deviation of rows, each [ROWS], in f32."""
    steps = tl.arange(0, STEP)
    mean = tl.zeros([ROWS], tl.float32)
    if KIND == 1:
        sums = tl.zeros([ROWS, STEP], tl.float32)
        for k in range(0, K, STEP):
            sums += tl.load(rows_at + k + steps[None, :], mask=k + steps[None, :] < K, other=0.0).to(
                tl.float32
            )
        mean = tl.sum(sums, 1) / K
    squares = tl.zeros([ROWS, STEP], tl.float32)
    for k in range(0, K, STEP):
        seen = k + steps[None, :] < K
        h = tl.load(rows_at + k + steps[None, :], mask=seen, other=0.0).to(tl.float32)
        left = tl.where(seen, h - mean[:, None], 0.0)
        squares += left * left
    return mean, tl.rsqrt(tl.sum(squares, 1) / K + eps)


@triton.jit
def _rows_kernel(
    x, weight, bias, norm_weight, norm_bias, residual, y,
    M, N, K, eps,
    KIND: tl.constexpr, NORM_WEIGHT: tl.constexpr, NORM_BIAS: tl.constexpr, BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr, GATED: tl.constexpr, RESIDUAL: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """The same of up to ROWS rows a block, through the matrix unit."""
    wait(PDL)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    # Rows and columns past the end read the last one; they are not stored.
    rows_at = x + tl.minimum(rows, M - 1)[:, None] * K
    columns_at = weight + tl.minimum(columns, N - 1).to(tl.int64)[:, None] * K
    gate_to_up = N.to(tl.int64) * K
    if KIND:
        mean, scale = row_statistics(rows_at, K, eps, KIND, ROWS, DEPTH)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    if GATED:
        total_up = tl.zeros([ROWS, COLUMNS], tl.float32)
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
        if GATED:
            u = tl.load(columns_at + gate_to_up + at[None, :], mask=seen, other=0.0)
            total_up = tl.dot(h, tl.trans(u), total_up, input_precision="ieee")
    stored = (rows < M)[:, None] & (columns < N)[None, :]
    if BIAS:
        total += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    if GATED:
        if BIAS:
            total_up += tl.load(bias + N + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
        total *= total_up
    places = rows[:, None] * N + columns[None, :]
    if RESIDUAL:
        total += tl.load(residual + places, mask=stored, other=0.0).to(tl.float32)
    tl.store(y + places, total.to(y.dtype.element_ty), mask=stored)


def linear_few(
    x: Tensor | Parts,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    norm: Norm | None = None,
    activation: str | None = None,
    gated: bool = False,
    residual: Tensor | None = None,
    slab: Slab | None = None,
    pdl: bool | None = None,
) -> Tensor:
    """activation(norm(x) weight^T + bias) + residual, for a few rows.

    Args:
        x: [..., K], contiguous, or parts of an attention whose heads side by side are the row.
        weight: [N, K], contiguous; [2 N, K] if gated.
        gated: the first half of the product, after the activation, times the second half.
        residual: [..., N], contiguous.
        slab: what a block reads; by the shape if left out.
        pdl: whether the kernel may start before the one ahead of it has ended; where the device can if left out.
    """
    K, N = weight.shape[1], weight.shape[0] // (2 if gated else 1)
    M = x.shape[:-1].numel()
    parts = x if isinstance(x, Parts) else None
    rows = M if M <= _VECTORS else min(64, max(16, triton.next_power_of_2(M)))
    s = slab or slab_for(rows, N, K, norm=norm is not None, gated=gated)
    if parts is not None and not (M <= _VECTORS and _combines(s, parts)):
        x, parts = parts.whole(pdl=pdl), None
    given = parts.values if parts is not None else x
    y = torch.empty(*x.shape[:-1], N, dtype=weight.dtype, device=weight.device)
    of_norm, eps = ((None, None), 0.0) if norm is None else (norm[1:3], norm.eps)
    flags: dict[str, Any] = {
        "KIND": 0 if norm is None else KINDS[norm.kind],
        "NORM_WEIGHT": of_norm[0] is not None, "NORM_BIAS": of_norm[1] is not None,
        "BIAS": bias is not None, "ACTIVATION": ACTIVATIONS[activation], "GATED": gated,
        "RESIDUAL": residual is not None, **launch_options(pdl),
    }  # fmt: skip
    flags |= {"COLUMNS": s.columns, "DEPTH": s.depth, "num_warps": s.warps}
    grid = (triton.cdiv(N, s.columns), triton.cdiv(M, rows))
    if M <= _VECTORS:
        splits = 0 if parts is None else parts.splits
        _row_kernel[grid](
            given, None if parts is None else parts.lse, weight, bias, *of_norm, residual, y, N, eps, M, K=K,
            SPLITS=splits, SPLITS_UP=triton.next_power_of_2(max(1, splits)), E=1 if parts is None else parts.width,
            ROWS=M, WIDTH=triton.next_power_of_2(K), **flags,
        )  # fmt: skip
    else:
        _rows_kernel[grid](
            given, weight, bias, *of_norm, residual, y, M, N, K, eps, ROWS=rows, num_stages=s.stages, **flags
        )
    return y


def _combines(slab: Slab, parts: Parts) -> bool:
    """Whether each block of a product puts the parts together itself: where that takes few enough registers."""
    held = triton.next_power_of_2(parts.splits) * slab.depth
    fits = slab.depth % parts.width == 0 and parts.width >= 16
    return fits and held <= (8192 if slab.depth < 1024 else 4096) * slab.warps


def slab_for(rows: int, N: int, K: int, *, norm: bool, gated: bool) -> Slab:
    """The slab for a product of so many rows, of what was fastest on an H200: see docs/speed.md.

    Of up to four, each block has few rows of the weight, all of which it asks for at once: they are held in registers.
    """
    if rows > _VECTORS:
        return Slab(32, 128, 8, 4) if rows < 64 else Slab(16 if N <= 2048 else 32, 128, 4, 4)
    slab = _fastest(N, K, norm=norm, gated=gated)
    held = slab.columns * slab.depth * triton.cdiv(K, slab.depth) * (2 if gated else 1)
    return slab._replace(
        warps=max(slab.warps, triton.next_power_of_2(triton.cdiv(held, 8192 if rows == 1 else 4096)))
    )


def _fastest(N: int, K: int, *, norm: bool, gated: bool) -> Slab:
    whole = triton.next_power_of_2(K)
    if K > 4096:
        return Slab(1 if N < 1024 else 2, 1024, 4)
    if gated and K % 512 != 0 and K % 128 == 0 and K <= 1024:
        return Slab(4, 128, 1)
    if gated or (N >= 4096 and K > 1024):
        return Slab(4, min(512, whole), 1)
    if K <= 1024:
        return Slab(4, whole, 1)
    if norm:
        return Slab(2, 512, 1)
    return Slab(2, min(2048, whole), 4 if N <= 512 else 1)
