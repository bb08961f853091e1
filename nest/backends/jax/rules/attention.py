"""Attention and rotary positions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import RULES, rule
from nest.backends.jax.rules.platform import current_platform

__all__ = ["attention", "visible"]


def visible(
    queries: int,
    keys: int,
    pos: Array | None = None,
    kv_len: Array | None = None,
    *,
    causal: bool = True,
    window: int | None = None,
) -> Array:
    """Bool [B or 1, 1, queries, keys]: which slots each query sees; query i is at slot pos + i of its row."""
    slots = jnp.arange(keys)
    seen = jnp.ones((1, queries, keys), bool)
    if causal:
        own = jnp.arange(queries)[:, None] + (0 if pos is None else pos[:, None, None])
        seen = seen & (slots <= own)
        if window is not None:
            seen = seen & (slots > own - window)
    if kv_len is not None:
        seen = seen & (slots < kv_len[:, None, None])
    return seen[:, None]


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    bias: Array | None = None,
    sinks: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Array:
    """softmax(scale * q k^T + bias) v over the keys that the mask shows, in f32; zeros where it shows none.

    q is [B, H, Q, E], k and v are [B, G, K, E]: query head h uses key head h // (H//G).
    """
    B, H, Q, E = q.shape
    G, K = k.shape[1:3]
    platform = current_platform()
    plain = isinstance(Q, int) and all(x is None for x in (mask, bias, sinks, softcap))
    if platform == "gpu" and plain and Q >= 64 and q.dtype.itemsize == 2:
        # One fused kernel, where the scores of f32 arithmetic would go to memory and back.
        q, k, v = (t.transpose(0, 2, 1, 3) for t in (q, k, v))
        fused = jax.nn.dot_product_attention(q, k, v, scale=scale, implementation="cudnn")
        return fused.transpose(0, 2, 1, 3)
    # For one query the CPU takes three times as long over five axes as over four; for a few it is the more exact way.
    few = not (isinstance(Q, int) and (Q == 1 or Q >= 64))
    rows = max((d for d in range(64, 257) if Q % d == 0), default=Q) if plain and Q > 512 else Q
    if platform == "cpu" and rows != Q:
        # Queries in blocks, whose scores stay in the processor's cache.
        blocks = q.reshape(B, H, Q // rows, rows, E).transpose(2, 0, 1, 3, 4)
        done: Array = lax.map(lambda block: attention(block, k, v, scale=scale), blocks)
        return done.transpose(1, 2, 0, 3, 4).reshape(B, H, Q, v.shape[3])
    if platform == "gpu" and Q == 1:
        # A product of one row uses a corner of the chip; a multiplication and a sum fuse and spread.
        spread = q.astype(jnp.float32).reshape(B, G, H // G, 1, E)
        scores = (spread * k.astype(jnp.float32)[:, :, None]).sum(-1).reshape(B, H, Q, K)
    elif few:
        scores = jnp.einsum(
            "bgrqe,bgke->bgrqk", q.reshape(B, G, H // G, Q, E), k, preferred_element_type=jnp.float32
        ).reshape(B, H, Q, K)
    else:
        # The queries of all heads that share a key head, as rows of one product.
        shared = q.reshape(B, G, H // G * Q, E)
        scores = jnp.einsum("bgqe,bgke->bgqk", shared, k, preferred_element_type=jnp.float32)
        scores = scores.reshape(B, H, Q, K)
    scores = scores * (E**-0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * jnp.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    peak = scores.max(-1, keepdims=True, initial=-jnp.inf)
    if sinks is not None:
        sinks = sinks.astype(jnp.float32)[:, None, None]
        peak = jnp.maximum(peak, sinks)
    peak = lax.stop_gradient(jnp.where(jnp.isneginf(peak), 0.0, peak))
    weights = jnp.exp(scores - peak)
    total = weights.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + jnp.exp(sinks - peak)
    weights = (weights / jnp.where(total == 0, 1.0, total)).astype(v.dtype)
    if few:
        weights = weights.reshape(B, G, H // G, Q, K)
        attended = jnp.einsum("bgrqk,bgkf->bgrqf", weights, v, preferred_element_type=jnp.float32)
    else:
        weights = weights.reshape(B, G, H // G * Q, K)
        attended = jnp.einsum("bgqk,bgkf->bgqf", weights, v, preferred_element_type=jnp.float32)
    return attended.reshape(B, H, Q, v.shape[3]).astype(q.dtype)


def _rule(
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
    if causal or kv_len is not None:
        seen = visible(q.shape[2], k.shape[2], pos, kv_len, causal=causal, window=window)
        mask = seen if mask is None else seen & mask
    return attention(q, k, v, mask, bias=bias, sinks=sinks, scale=scale, softcap=softcap)


RULES["attention"] = _rule


@rule
def rope(x: Array, pos: Array, inv_freq: Array, *, layout: str, scale: float) -> Array:
    """Rotate the first 2R elements of x [B, H, S, E] by pos times R frequencies, in f32."""
    if pos.ndim == 1:
        pos = pos[:, None] + jnp.arange(x.shape[2])
    angle = pos[:, None, :, None].astype(jnp.float32) * inv_freq
    cos, sin = jnp.cos(angle) * scale, jnp.sin(angle) * scale
    R = inv_freq.shape[0]
    part = x[..., : 2 * R].astype(jnp.float32)
    if layout == "half":
        a, b = part[..., :R], part[..., R:]
        turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = part[..., 0::2], part[..., 1::2]
        turned = jnp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(part.shape)
    return jnp.concatenate([turned.astype(x.dtype), x[..., 2 * R :]], -1)
