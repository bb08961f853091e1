"""Attention of few queries to keys that do not change, an encoder's, as one Triton kernel: split over the keys."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.launching import launch_options, wait
from nest.backends.torch.kernels.parts import Parts
from nest.backends.torch.kernels.step_attention import TO_TWO, leave, place_for, seen_block

__all__ = ["attend_heard", "heard_split"]


@triton.jit
def _heard_kernel(
    q, k, v, y, lse,
    K, rows, scale, q_row, kb, kh, ks, vb, vh, vs,
    H: tl.constexpr, KV: tl.constexpr, E: tl.constexpr, W: tl.constexpr,
    S: tl.constexpr, KEYS: tl.constexpr, SPLITS: tl.constexpr, EARLY: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """A query over a part of K keys that do not change."""
    row, h = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H
    split = tl.program_id(1)
    width = tl.arange(0, W)
    inside = (width < E)[None, :]
    kv = h // (H // KV)
    k_at = k + (row // S) * kb + kv * kh + width[None, :]
    v_at = v + (row // S) * vb + kv * vh + width[None, :]
    keys = tl.arange(0, KEYS)
    if EARLY:
        # The first keys and values are asked for before the kernel ahead, which makes the query, has ended.
        at = split * KEYS + keys
        there = (at < K)[:, None] & inside
        first_k = tl.load(k_at + at[:, None] * ks, mask=there, other=0.0)
        first_v = tl.load(v_at + at[:, None] * vs, mask=there, other=0.0)
    wait(PDL)
    query = (
        tl.load(q + row * q_row + h * E + width, mask=width < E, other=0.0).to(tl.float32)[None, :] * scale
    )
    total = tl.zeros([W], tl.float32)
    peak = float("-inf")
    mass = 0.0
    start = split
    if EARLY:
        total, peak, mass = seen_block(
            query, first_k.to(tl.float32), first_v.to(tl.float32), at < K, total, peak, mass
        )
        start = split + SPLITS
    for block in range(start, tl.cdiv(K, KEYS), SPLITS):
        at = block * KEYS + keys
        there = (at < K)[:, None] & inside
        some_k = tl.load(k_at + at[:, None] * ks, mask=there, other=0.0).to(tl.float32)
        some_v = tl.load(v_at + at[:, None] * vs, mask=there, other=0.0).to(tl.float32)
        total, peak, mass = seen_block(query, some_k, some_v, at < K, total, peak, mass)
    leave(total, peak, mass, y, lse, split * rows + row, h, H, E, W, SPLITS)


def attend_heard(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    split: tuple[int, int, int] | None = None,
    early: bool = True,
    pdl: bool | None = None,
) -> Tensor | Parts:
    """softmax(scale q k^T) v of few queries over all keys.

    Args:
        q: [B, S, H E], contiguous.
        k: [B, KV, K, E], as v, any strides but that of E.
        split: blocks that share the keys of a head, keys that one sees at once, its warps; by the shape if left out.
        early: keys and values are read before the kernel ahead has ended, which must not be what writes them.

    Returns:
        [B, S, H E], or its parts where there are splits.
    """
    B, S, columns = q.shape
    KV, K, E = k.shape[1:]
    H = columns // E
    splits, keys, warps = split or heard_split(B * S, H, K)
    parts = place_for(q, B, S, H, E, splits)
    _heard_kernel[(B * S * H, splits)](
        q, k, v, *parts, K, B * S, (E**-0.5 if scale is None else scale) * TO_TWO, columns,
        *k.stride()[:3], *v.stride()[:3],
        H=H, KV=KV, E=E, W=triton.next_power_of_2(E), S=S, KEYS=keys, SPLITS=splits, EARLY=early,
        num_warps=warps, **launch_options(pdl),
    )  # fmt: skip
    values, lse = parts
    return values if lse is None else Parts(values, lse, q.dtype)


def heard_split(rows: int, heads: int, keys: int) -> tuple[int, int, int]:
    """Splits, keys a block and warps for so many keys: two blocks for each processor of an H200 at most."""
    most = triton.cdiv(keys, 128)
    return max(1, min(most, 264 // (rows * heads))), 128, 4
