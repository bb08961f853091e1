"""Attention of one step of a decoder as one Triton kernel: norms of heads, rotation, cache and softmax.

A block sees some of the keys of one head of one query; what it leaves is a part (`Parts`), which the next kernel puts
together as it reads it. Only slots that hold keys are read, whatever the capacity is: the position is on the device.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.launching import launch_options, wait
from nest.backends.torch.kernels.parts import Parts

__all__ = [
    "TO_TWO",
    "Heads",
    "Rotation",
    "attend_step",
    "leave",
    "place_for",
    "seen_block",
    "step_split",
]


class Heads(NamedTuple):
    """How the columns of a packed projection are cut: queries, then keys, then values."""

    queries: int
    keys: int
    width: int


class Rotation(NamedTuple):
    """Rotary positions.

    Attributes:
        inv_freq: [R / 2], f32; the first R elements of a head turn.
        interleaved: whether pairs stand next to each other, and not half a head apart.
        scale: of the cosine and sine.
    """

    inv_freq: Tensor
    interleaved: bool = False
    scale: float = 1.0


@triton.jit
def _normed(x, at, inside, squares, weight, eps, E: tl.constexpr):
    """Rows [N, W] over their root mean square, of which `squares` are the sums, times the weight of elements `at`."""
    scale = tl.rsqrt(squares / E + eps)
    return x * scale[:, None] * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)[None, :]


@triton.jit
def _turned(
    rows_at, there, slots, inv_freq, weight, eps, rope_scale,
    E: tl.constexpr, W: tl.constexpr, TURNED: tl.constexpr, PAIRS: tl.constexpr, NORMED: tl.constexpr,
):  # fmt: skip
    """Rows of a head, [N, W] in f32, after their norm and rotation to `slots` [N]."""
    width = tl.arange(0, W)
    inside = width < E
    x = tl.load(rows_at + width[None, :], mask=there & inside[None, :], other=0.0).to(tl.float32)
    if NORMED:
        squares = tl.sum(x * x, 1)
        x = _normed(x, width, inside, squares, weight, eps, E)
    if TURNED:
        half: tl.constexpr = TURNED // 2
        turns = width < TURNED
        if PAIRS:
            partner = width ^ 1
            which = width // 2
            first = width % 2 == 0
        else:
            partner = tl.where(width < half, width + half, width - half)
            which = tl.where(width < half, width, width - half)
            first = width < half
        partner = tl.where(turns, partner, 0)
        other = tl.load(rows_at + partner[None, :], mask=there & turns[None, :], other=0.0).to(tl.float32)
        if NORMED:
            other = _normed(other, partner, turns, squares, weight, eps, E)
        angles = slots.to(tl.float32)[:, None] * tl.load(inv_freq + which, mask=turns, other=0.0)[None, :]
        turned = x * tl.cos(angles) + tl.where(first[None, :], -other, other) * tl.sin(angles)
        x = tl.where(turns[None, :], turned * rope_scale, x)
    return x


@triton.jit
def seen_block(q, k, v, mask, total, peak, mass):
    """The sums over keys with those of one more block: k and v [N, W], mask [N]; exponents are of two."""
    scores = tl.where(mask, tl.sum(k * q, 1), float("-inf"))
    higher = tl.maximum(peak, tl.max(scores, 0))
    # Where no key was seen yet the peak is -inf, and -inf less itself no number.
    from_ = tl.where(higher > float("-inf"), higher, 0.0)
    shrink = tl.exp2(peak - from_)
    weights = tl.exp2(scores - from_)
    return total * shrink + tl.sum(weights[:, None] * v, 0), higher, mass * shrink + tl.sum(weights, 0)


@triton.jit
def _step_kernel(
    packed, k_cache, v_cache, pos, inv_freq, q_weight, k_weight, y, lse,
    capacity, rows, scale, eps, rope_scale, packed_row, kb, kh, ks, vb, vh, vs,
    H: tl.constexpr, KV: tl.constexpr, E: tl.constexpr, W: tl.constexpr,
    S: tl.constexpr, NEW: tl.constexpr, KEYS: tl.constexpr, SPLITS: tl.constexpr,
    TURNED: tl.constexpr, PAIRS: tl.constexpr, Q_NORM: tl.constexpr, K_NORM: tl.constexpr, AT: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """Query i of a row, at slot pos + i: the slots before pos from the cache, the S new keys from the projection."""
    row, h = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H
    b, i = row // S, (row % S).to(tl.int32)
    split = tl.program_id(1)
    group: tl.constexpr = H // KV
    kv = h // group
    width = tl.arange(0, W)
    inside = (width < E)[None, :]
    k_at = k_cache + b * kb + kv * kh + width[None, :]
    v_at = v_cache + b * vb + kv * vh + width[None, :]
    keys = tl.arange(0, KEYS)
    start = 0
    if AT:
        # The kernel ahead makes the projection: where the row is, and what it holds, is known before that has ended.
        start = tl.load(pos + b)
        at = split * KEYS + keys
        first = at < tl.minimum(start, capacity)
        first_k = tl.load(k_at + at[:, None] * ks, mask=first[:, None] & inside, other=0.0)
        first_v = tl.load(v_at + at[:, None] * vs, mask=first[:, None] & inside, other=0.0)
    wait(PDL)
    one = tl.arange(0, 1)
    q = _turned(
        packed + (row + one)[:, None] * packed_row + h * E, inside, start + i + one, inv_freq, q_weight, eps,
        rope_scale, E, W, TURNED, PAIRS, Q_NORM,
    )  # fmt: skip
    q = q.to(packed.dtype.element_ty).to(tl.float32) * scale
    total = tl.zeros([W], tl.float32)
    peak = float("-inf")
    mass = 0.0
    if AT:
        total, peak, mass = seen_block(
            q, first_k.to(tl.float32), first_v.to(tl.float32), first, total, peak, mass
        )
        before = tl.minimum(start, capacity)
        for block in range(split + SPLITS, tl.cdiv(before, KEYS), SPLITS):
            at = block * KEYS + keys
            there = (at < before)[:, None] & inside
            k = tl.load(k_at + at[:, None] * ks, mask=there, other=0.0).to(tl.float32)
            v = tl.load(v_at + at[:, None] * vs, mask=there, other=0.0).to(tl.float32)
            total, peak, mass = seen_block(q, k, v, at < before, total, peak, mass)
    if split == 0:
        new = tl.arange(0, NEW)
        there = (new <= i)[:, None] & inside
        new_at = packed + (b * S + new)[:, None] * packed_row + (H + kv) * E
        slots = start + new
        k = _turned(new_at, there, slots, inv_freq, k_weight, eps, rope_scale, E, W, TURNED, PAIRS, K_NORM)
        v = tl.load(new_at + KV * E + width[None, :], mask=there, other=0.0)
        k = k.to(packed.dtype.element_ty)
        total, peak, mass = seen_block(q, k.to(tl.float32), v.to(tl.float32), new <= i, total, peak, mass)
        if h % group == 0:
            mine = (new == i)[:, None] & (slots < capacity)[:, None] & inside
            tl.store(k_at + slots[:, None] * ks, k, mask=mine)
            tl.store(v_at + slots[:, None] * vs, v, mask=mine)
    leave(total, peak, mass, y, lse, split * rows + row, h, H, E, W, SPLITS)


@triton.jit
def leave(
    total, peak, mass, y, lse, place, h, H: tl.constexpr, E: tl.constexpr, W: tl.constexpr, SPLITS: tl.constexpr
):  # fmt: skip
    """Store a block's mean of values and, where it is a part, its share."""
    width = tl.arange(0, W)
    mean = total / tl.where(mass > 0, mass, 1.0)
    tl.store(y + (place * H + h) * E + width, mean.to(y.dtype.element_ty), mask=width < E)
    if SPLITS > 1:
        tl.store(lse + place * H + h, peak + tl.log2(mass))


TO_TWO = 1.4426950408889634
"""Of an exponent of e to one of two."""


def attend_step(
    packed: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    pos: Tensor | None,
    heads: Heads,
    *,
    scale: float | None = None,
    rotation: Rotation | None = None,
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 0.0,
    split: tuple[int, int, int] | None = None,
    pdl: bool | None = None,
) -> Tensor | Parts:
    """Put the new keys and values into the caches from slot `pos` on, and attend causally to all slots so far.

    The position and the slots before it are read before the kernel ahead has ended, which may write neither.

    Args:
        packed: [B, S, (H + 2 KV) E], contiguous: queries, keys and values of the S new positions, 16 at most.
        k_cache: [B, KV, C, E], as v_cache, any strides but that of E. Slots from C on are not written.
        pos: [B], i32, on the device; 0 if None.
        q_norm: [E], as k_norm: weights of rms norms of each head before it is turned, or None.
        split: blocks that share the keys of a head, keys that one sees at once, its warps; by the shape if left out.

    Returns:
        [B, S, H E], or its parts where there are splits.
    """
    B, S, columns = packed.shape
    H, KV, E = heads
    # A prompt has no keys before it.
    splits, keys, warps = split or ((1, 16, 1) if pos is None else step_split(B * S, H, k_cache.shape[2]))
    parts = place_for(packed, B, S, H, E, splits)
    inv_freq, interleaved, rope_scale = rotation or (None, False, 1.0)
    _step_kernel[(B * S * H, splits)](
        packed, k_cache, v_cache, pos, inv_freq, q_norm, k_norm, *parts,
        k_cache.shape[2], B * S, (E**-0.5 if scale is None else scale) * TO_TWO, eps, rope_scale, columns,
        *k_cache.stride()[:3], *v_cache.stride()[:3],
        H=H, KV=KV, E=E, W=triton.next_power_of_2(E), S=S, NEW=triton.next_power_of_2(S), KEYS=keys, SPLITS=splits,
        TURNED=0 if inv_freq is None else 2 * inv_freq.shape[0], PAIRS=interleaved,
        Q_NORM=q_norm is not None, K_NORM=k_norm is not None, AT=pos is not None, num_warps=warps,
        **launch_options(pdl),
    )  # fmt: skip
    values, lse = parts
    return values if lse is None else Parts(values, lse, packed.dtype)


def place_for(like: Tensor, B: int, S: int, H: int, E: int, splits: int) -> tuple[Tensor, Tensor | None]:
    """Memory for a result, or for its parts."""
    if splits == 1:
        return torch.empty(B, S, H * E, dtype=like.dtype, device=like.device), None
    values = torch.empty(splits, B, S, H * E, dtype=torch.float32, device=like.device)
    return values, torch.empty(splits, B, S, H, dtype=torch.float32, device=like.device)


def step_split(rows: int, heads: int, capacity: int) -> tuple[int, int, int]:
    """Splits, keys a block and warps for caches of so many slots: as many as still pay when few slots are filled."""
    blocks = rows * heads
    if blocks >= 264:
        return (2, 16, 1) if capacity <= 256 else (4, 32, 1)
    if capacity <= 256:
        return 4, 16, 1
    return (8 if capacity <= 512 and blocks < 20 else 16), 16, 1
