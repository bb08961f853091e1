"""Attention of many queries over all keys, as an encoder has it, in one Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.many_rows import Tile

__all__ = ["attend_all"]


@triton.jit
def _seen_block(
    q, k_at, v_at, total, peak, mass, start, K, k_stride, v_stride, scale, keys, MASKED: tl.constexpr
):
    """The sums over keys, with those of a block from `start` on; exponents are of two."""
    at = start + keys
    if MASKED:
        k = tl.load(k_at + at[None, :] * k_stride, mask=at[None, :] < K, other=0.0)
        v = tl.load(v_at + at[:, None] * v_stride, mask=at[:, None] < K, other=0.0)
    else:
        k = tl.load(k_at + at[None, :] * k_stride)
        v = tl.load(v_at + at[:, None] * v_stride)
    scores = tl.dot(q, k) * scale
    if MASKED:
        scores = tl.where(at[None, :] < K, scores, float("-inf"))
    higher = tl.maximum(peak, tl.max(scores, 1))
    shrink = tl.exp2(peak - higher)
    weights = tl.exp2(scores - higher[:, None])
    mass = mass * shrink + tl.sum(weights, 1)
    total = tl.dot(weights.to(v.dtype), v, total * shrink[:, None])
    return total, higher, mass


@triton.jit
def _attention_kernel(
    q, k, v, y, partial, lse,
    Q, K, H, scale,
    qb, qh, qs, kb, kh, ks, vb, vh, vs,
    E: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """A tile of ROWS queries of one head over a part of the keys; y is [B, Q, H, E]."""
    b, h = (tl.program_id(1) // H).to(tl.int64), tl.program_id(1) % H
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    keys, width = tl.arange(0, KEYS), tl.arange(0, E)
    held = tl.minimum(rows, Q - 1)
    queries = tl.load(q + b * qb + h * qh + held[:, None] * qs + width[None, :])
    k_at = k + b * kb + h * kh + width[:, None]
    v_at = v + b * vb + h * vh + width[None, :]
    total = tl.zeros([ROWS, E], tl.float32)
    peak = tl.full([ROWS], float("-inf"), tl.float32)
    mass = tl.zeros([ROWS], tl.float32)
    blocks = tl.cdiv(K, KEYS)
    first = tl.program_id(2) * blocks // SPLITS
    last = (tl.program_id(2) + 1) * blocks // SPLITS
    whole = tl.minimum(last, K // KEYS)
    for i in range(first, whole):
        total, peak, mass = _seen_block(
            queries, k_at, v_at, total, peak, mass, i * KEYS, K, ks, vs, scale, keys, False
        )
    for i in range(whole, last):
        total, peak, mass = _seen_block(
            queries, k_at, v_at, total, peak, mass, i * KEYS, K, ks, vs, scale, keys, True
        )
    total = total / mass[:, None]
    stored = (rows < Q)[:, None]
    place = ((b * Q + rows) * H + h)[:, None] * E + width[None, :]
    if SPLITS == 1:
        tl.store(y + place, total.to(y.dtype.element_ty), mask=stored)
    else:
        part = tl.program_id(2) * tl.num_programs(1) // H * Q * H
        tl.store(partial + part * E + place, total.to(partial.dtype.element_ty), mask=stored)
        tl.store(lse + part + (b * Q + rows) * H + h, peak + tl.log2(mass), mask=rows < Q)


@triton.jit
def _combine_kernel(partial, lse, y, count, E: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr):
    """Parts of the keys, each weighted by its share of the sum of exponentials; `count` rows of E."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    width = tl.arange(0, E)
    peak = tl.full([ROWS], float("-inf"), tl.float32)
    for s in tl.static_range(SPLITS):
        peak = tl.maximum(peak, tl.load(lse + s * count + rows, mask=rows < count, other=0.0))
    total = tl.zeros([ROWS, E], tl.float32)
    mass = tl.zeros([ROWS], tl.float32)
    for s in tl.static_range(SPLITS):
        share = tl.exp2(tl.load(lse + s * count + rows, mask=rows < count, other=0.0) - peak)
        at = (s * count + rows)[:, None] * E + width[None, :]
        total += share[:, None] * tl.load(partial + at, mask=(rows < count)[:, None], other=0.0).to(
            tl.float32
        )
        mass += share
    total = total / mass[:, None]
    tl.store(
        y + rows[:, None] * E + width[None, :], total.to(y.dtype.element_ty), mask=(rows < count)[:, None]
    )


def attend_all(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    tile: Tile | None = None,
    splits: int = 3,
) -> Tensor:
    """softmax(scale q k^T) v, every query over every key; [B, H, Q, E] as a view of [B, Q, H, E].

    Args:
        q: [B, H, Q, E], k and v [B, H, K, E] with any strides but those of E, which is 16, 32, 64 or 128.
        tile: rows are queries, columns keys.
        splits: parts of the keys that blocks of their own see, no more than there are tiles of keys.
    """
    B, H, Q, E = q.shape
    K = k.shape[2]
    t = tile or Tile(64, 64, 0, 4, 2)
    y = torch.empty(B, Q, H, E, dtype=q.dtype, device=q.device)
    partial = lse = None
    if splits > 1:
        partial = torch.empty(splits, B, Q, H, E, dtype=q.dtype, device=q.device)
        lse = torch.empty(splits, B, Q, H, dtype=torch.float32, device=q.device)
    by_two = (E**-0.5 if scale is None else scale) * 1.4426950408889634
    _attention_kernel[(triton.cdiv(Q, t.rows), B * H, splits)](
        q, k, v, y, partial, lse, Q, K, H, by_two,
        *(stride for x in (q, k, v) for stride in x.stride()[:3]),
        E=E, ROWS=t.rows, KEYS=t.columns, SPLITS=splits,
        num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
    if splits > 1:
        count = B * Q * H
        _combine_kernel[(triton.cdiv(count, 32),)](
            partial, lse, y, count, E=E, SPLITS=splits, ROWS=32, num_warps=4
        )
    return y.transpose(1, 2)
