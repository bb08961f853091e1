"""Attention and rotary positions."""

from __future__ import annotations

import math

import numpy as np

from nest.backends.reference.rules._registry import Array, rule, wide

__all__: list[str] = []


@rule
def attention(
    q: Array,
    k: Array,
    v: Array,
    pos: Array | None,
    kv_len: Array | None,
    mask: Array | None,
    bias: Array | None,
    sinks: Array | None,
    *,
    causal: bool,
    window: int | None,
    scale: float | None,
    softcap: float | None,
) -> Array:
    batch, heads, queries, size = q.shape
    share = heads // k.shape[1]
    factor = wide(q).dtype.type(1.0 / math.sqrt(size) if scale is None else scale)
    result = np.empty((batch, heads, queries, v.shape[3]), q.dtype)
    # One head at a time: all scores of a long input at once would not fit.
    for row in range(batch):
        rows = _visible(row, queries, k.shape[2], pos if causal else None, kv_len, causal, window)
        for head in range(heads):
            keys, values = wide(k[row, head // share]), wide(v[row, head // share])
            scores = (wide(q[row, head]) @ keys.T) * factor
            if softcap is not None:
                cap = scores.dtype.type(softcap)
                scores = cap * np.tanh(scores / cap)
            if bias is not None:
                scores = scores + _plane(bias, row, head)
            seen = rows if mask is None else rows & _plane(mask, row, head)
            weights = _weights(scores, seen, None if sinks is None else wide(sinks)[head])
            result[row, head] = weights @ values
    return result


def _plane(x: Array, row: int, head: int) -> Array:
    """One head's [Q, K] of what broadcasts to [B, H, Q, K]."""
    plane: Array = x[min(row, x.shape[0] - 1), min(head, x.shape[1] - 1)]
    return plane


def _visible(
    row: int,
    queries: int,
    keys: int,
    pos: Array | None,
    kv_len: Array | None,
    causal: bool,
    window: int | None,
) -> Array:
    """Bool [Q, K]: which slots each query of a row sees by its position and by the row's length."""
    slots = np.arange(keys)
    seen = np.ones((queries, keys), np.bool_)
    if causal:
        own = np.arange(queries)[:, None] + (0 if pos is None else int(pos[row]))
        seen &= slots <= own
        if window is not None:
            seen &= slots > own - window
    if kv_len is not None:
        seen &= slots < int(kv_len[row])
    return seen


def _weights(scores: Array, seen: Array, sink: float | None) -> Array:
    """Softmax over the keys that are seen; a row that sees none is zeros."""
    scores = np.where(seen, scores, -np.inf)
    peak = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        peak = np.maximum(peak, sink)
    peak = np.where(np.isneginf(peak), np.zeros((), scores.dtype), peak)
    powers = np.exp(scores - peak)
    total = powers.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - peak)
    weights: Array = powers / np.where(total == 0, np.ones((), scores.dtype), total)
    return weights


@rule
def rope(x: Array, pos: Array, inv_freq: Array, *, layout: str, scale: float) -> Array:
    places = pos if pos.ndim == 2 else pos[:, None] + np.arange(x.shape[2])
    y = wide(x).astype(np.result_type(wide(x), inv_freq))
    angles = places.astype(y.dtype)[:, None, :, None] * inv_freq
    cos, sin = np.cos(angles) * y.dtype.type(scale), np.sin(angles) * y.dtype.type(scale)
    pairs = inv_freq.shape[0]
    if layout == "half":
        first, second = slice(0, pairs), slice(pairs, 2 * pairs)
    else:
        first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    result = y.copy()
    result[..., first] = y[..., first] * cos - y[..., second] * sin
    result[..., second] = y[..., second] * cos + y[..., first] * sin
    return result.astype(x.dtype)
