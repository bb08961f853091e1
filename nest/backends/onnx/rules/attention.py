"""Attention and rotary positions."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from nest.backends.onnx.graph import CONTRIB, Tensor
from nest.backends.onnx.rules._registry import Lowering, rule, wide_dtype
from nest.ir.dim import Dim

__all__: list[str] = []


@rule
def attention(
    low: Lowering,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pos: Tensor | None,
    kv_len: Tensor | None,
    mask: Tensor | None,
    bias: Tensor | None,
    sinks: Tensor | None,
    *,
    causal: bool,
    window: int | None,
    scale: float | None,
    softcap: float | None,
) -> ir.Value:
    """ONNX's Attention; with sinks, which it has not, and before opset 24 the formula itself."""
    pos = pos if causal else None
    one_query = _is_one(q.shape[2])
    written_out = sinks is not None or low.graph.opset < 24
    plain = not written_out and window is None and not (causal and kv_len is not None)
    # A query sees its own slot at least, unless something else may hide it.
    sees_some = mask is None and bias is None and kv_len is None and window is None
    if not plain or (pos is not None and not one_query):
        mask = _both(low, _seen(low, q, k, pos, kv_len, causal, window), mask)
        causal, pos, kv_len = False, None, None
    if written_out:
        return _decomposed(low, q, k, v, mask, bias, sinks, scale, softcap, sees_some)
    many = q.shape[2].value is not None and q.shape[2].value >= _MANY
    unmasked = plain and not causal and all(x is None for x in (mask, bias, kv_len, softcap))
    if low.graph.contrib and many and unmasked and q.dtype == "f32" and q.shape[1].same(k.shape[1]):
        return _tiled(low, q, k, v, scale)
    if one_query and unmasked and _gains_by_turning(low, q, k, v):
        return _turned(low, q, k, v, scale)
    length = _length(low, k, pos, kv_len)
    causal = causal and pos is None
    extra = _extra(low, q, k, mask, bias)
    options: dict[str, Any] = {"scale": scale, "softcap": softcap, "is_causal": 1 if causal else None}
    return low.op("Attention", q, k, v, extra, None, None, length, **options)


_MANY = 64
"""So many queries keep the tiled kernel busy; with fewer it is the slower one."""


def _tiled(low: Lowering, q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> ir.Value:
    """ONNX Runtime's own op, which goes through the keys in tiles that stay in the processor's cache."""
    heads, size = int(q.shape[1]), q.shape[1] * q.shape[3]
    flat = []
    for x in (q, k, v):
        rows = low.graph.transpose(x, (0, 2, 1, 3))
        before = (x.shape[0], x.shape[2], x.shape[1], x.shape[3])
        flat.append(low.dims.reshape(rows, before, (*before[:2], size)))
    y = low.op("MultiHeadAttention", *flat, domain=CONTRIB, num_heads=heads, scale=scale)
    after = (q.shape[0], q.shape[2], q.shape[1], v.shape[3])
    return low.graph.transpose(low.dims.reshape(y, (*after[:2], size), after), (0, 2, 1, 3))


def _gains_by_turning(low: Lowering, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether each iteration of a loop goes through many keys that are made outside of it, as of a window of audio."""
    many = k.shape[2].value is not None and k.shape[2].value >= _MANY
    alike = q.dtype == "f32" and q.shape[1].same(k.shape[1])
    return low.graph.contrib and many and alike and all(map(low.graph.is_outside, (k, v)))


def _turned(low: Lowering, q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> ir.Value:
    """Of one query, with the slots as the last axis: products then read a row of the keys at a time, not one key.

    Turning them takes as long as some six iterations gain by it.
    """
    keys, values = (low.graph.transpose(x, (0, 1, 3, 2)) for x in (k, v))
    factor = int(q.shape[3]) ** -0.5 if scale is None else scale
    scores = low.op("FusedMatMul", q, keys, domain=CONTRIB, alpha=factor)
    weights = low.op("Softmax", scores, axis=-1)
    return low.op("FusedMatMul", weights, values, domain=CONTRIB, transB=1)


def _length(low: Lowering, k: Tensor, pos: Tensor | None, kv_len: Tensor | None) -> ir.Value | None:
    """How many keys the one query of a row sees, Int64 [B], or where the row's padding begins."""
    seen = kv_len
    if pos is not None:
        after = low.op("Add", pos, low.constant(1, "i32"))
        seen = Tensor(pos.shape, "i32", after)
    if seen is None:
        return None
    # More than there are is an error in the op, and all of them in the definition.
    return low.op("Min", low.graph.cast(seen, "i64"), low.dims.size(k.shape[2]))


def _extra(low: Lowering, q: Tensor, k: Tensor, mask: Tensor | None, bias: Tensor | None) -> ir.Value | None:
    """What is masked or added, as one input; runtimes broadcast its first two axes alone."""
    extra = mask or bias
    if extra is None:
        return None
    shape = extra.shape
    if mask is not None and bias is not None:
        merged = low.op("Where", mask, bias, low.constant(-math.inf, bias.dtype))
        shape = tuple(b if _is_one(a) else a for a, b in zip(mask.shape, bias.shape, strict=True))
        extra = Tensor(shape, bias.dtype, merged)
    if shape[2].same(q.shape[2]) and shape[3].same(k.shape[2]):
        return extra.value
    return low.op("Expand", extra, low.dims.shape((*shape[:2], q.shape[2], k.shape[2])))


def _is_one(dim: Dim) -> bool:
    return dim.value == 1


def _seen(
    low: Lowering,
    q: Tensor,
    k: Tensor,
    pos: Tensor | None,
    kv_len: Tensor | None,
    causal: bool,
    window: int | None,
) -> Tensor | None:
    """Bool [B or 1, 1, Q or 1, K]: which slots a query sees by its position and by the row's length."""
    slots = _range(low, k.shape[2])
    seen: ir.Value | None = None
    one = Dim.constant(1)
    rows, queries = one, one
    if causal:
        own = low.unsqueeze(_range(low, q.shape[2]), 1)
        if pos is not None:
            own = low.op("Add", low.unsqueeze(pos.value, 1, 2, 3), own)
            rows = q.shape[0]
        else:
            own = low.unsqueeze(own, 0, 1)
        queries = q.shape[2]
        seen = low.op("LessOrEqual", slots, own)
        if window is not None:
            first = low.op("Sub", own, low.constant(window, "i32"))
            seen = low.op("And", seen, low.op("Greater", slots, first))
    if kv_len is not None:
        inside = low.op("Less", slots, low.unsqueeze(kv_len.value, 1, 2, 3))
        seen = inside if seen is None else low.op("And", seen, inside)
        rows = q.shape[0]
    return None if seen is None else Tensor((rows, one, queries, k.shape[2]), "bool", seen)


def _range(low: Lowering, size: Dim) -> ir.Value:
    """Int32 [size]: 0, 1, ..."""
    return low.op("Range", low.constant(0, "i32"), low.dims.scalar(size, "i32"), low.constant(1, "i32"))


def _both(low: Lowering, a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a or b
    shape = tuple(y if _is_one(x) else x for x, y in zip(a.shape, b.shape, strict=True))
    return Tensor(shape, "bool", low.op("And", a, b))


def _decomposed(
    low: Lowering,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    sinks: Tensor | None,
    scale: float | None,
    softcap: float | None,
    sees_some: bool,
) -> ir.Value:
    dtype = wide_dtype(q.dtype)
    scores = _scores(low, q, k, scale, dtype)
    if softcap is not None:
        cap = low.constant(softcap, dtype)
        scores = low.op("Mul", low.op("Tanh", low.op("Div", scores, cap)), cap)
    if bias is not None:
        scores = low.op("Add", scores, low.wide(bias))
    if mask is not None:
        scores = low.op("Where", mask, scores, low.constant(-math.inf, dtype))
    if sees_some and sinks is None:
        weights = low.op("Softmax", scores, axis=-1)
    else:
        weights = _weights(low, scores, None if sinks is None else low.wide(sinks), dtype)
    grouped = (q.shape[0], k.shape[1], _shared_rows(q, k), k.shape[2])
    full = (*q.shape[:3], k.shape[2])
    mixed = low.op("MatMul", low.dims.reshape(weights, full, grouped), low.wide(v))
    result = low.dims.reshape(mixed, (*grouped[:3], v.shape[3]), (*q.shape[:3], v.shape[3]))
    return low.narrow(result, q.dtype)


def _shared_rows(q: Tensor, k: Tensor) -> Dim:
    """The queries of all heads that share a key head."""
    return q.shape[1] // k.shape[1] * q.shape[2]


def _scores(low: Lowering, q: Tensor, k: Tensor, scale: float | None, dtype: str) -> ir.Value:
    """scale * q k^T as [B, H, Q, K]."""
    grouped = (q.shape[0], k.shape[1], _shared_rows(q, k), q.shape[3])
    keys = low.op("Transpose", low.wide(k), perm=(0, 1, 3, 2))
    scores = low.op("MatMul", low.dims.reshape(low.wide(q), q.shape, grouped), keys)
    scores = low.dims.reshape(scores, (*grouped[:3], k.shape[2]), (*q.shape[:3], k.shape[2]))
    if scale is not None:
        return low.op("Mul", scores, low.constant(scale, dtype))
    return low.op("Div", scores, low.op("Sqrt", low.dims.scalar(q.shape[3], dtype)))


def _weights(low: Lowering, scores: ir.Value, sinks: ir.Value | None, dtype: str) -> ir.Value:
    """Softmax over the keys that are seen; a row that sees none is zeros, where Softmax would give NaN."""
    zero = low.constant(0.0, dtype)
    peak = low.reduce("ReduceMax", scores, (-1,), keepdims=True)
    sink = None if sinks is None else low.unsqueeze(sinks, 0, 2, 3)
    if sink is not None:
        peak = low.op("Max", peak, sink)
    peak = low.op("Where", low.op("IsInf", peak, detect_positive=0), zero, peak)
    powers = low.op("Exp", low.op("Sub", scores, peak))
    total = low.reduce("ReduceSum", powers, (-1,), keepdims=True)
    if sink is not None:
        total = low.op("Add", total, low.op("Exp", low.op("Sub", sink, peak)))
    safe = low.op("Where", low.op("Equal", total, zero), low.constant(1.0, dtype), total)
    return low.op("Div", powers, safe)


@rule
def rope(low: Lowering, x: Tensor, pos: Tensor, inv_freq: Tensor, *, layout: str, scale: float) -> ir.Value:
    """The tables are computed once for all layers that share positions and frequencies."""
    places = pos.value
    if pos.rank == 1:
        places = low.op("Add", low.unsqueeze(places, 1), _range(low, x.shape[2]))
    angles = low.op("Mul", low.unsqueeze(low.graph.cast(places, "f32"), 2), inv_freq)
    factor = low.constant(scale, "f32")
    cos, sin = (low.op("Mul", low.op(f, angles), factor) for f in ("Cos", "Sin"))
    if low.graph.opset < 23:
        return low.narrow(_rotated(low, x, cos, sin, int(inv_freq.shape[0]), layout), x.dtype)
    y = low.op(
        "RotaryEmbedding",
        low.wide(x),
        cos,
        sin,
        interleaved=int(layout == "interleaved"),
        rotary_embedding_dim=2 * int(inv_freq.shape[0]),
    )
    return low.narrow(y, x.dtype)


def _rotated(low: Lowering, x: Tensor, cos: ir.Value, sin: ir.Value, count: int, layout: str) -> ir.Value:
    """Pairs of the first 2 * count elements turned by their angles, whose tables are [B or 1, S, count]."""

    def cut(value: ir.Value, start: int, stop: int, step: int = 1) -> ir.Value:
        return low.op("Slice", value, *map(low.integers, (start, stop, -1, step)))

    y, size = low.wide(x), int(x.shape[-1])
    cos, sin = low.unsqueeze(cos, 1), low.unsqueeze(sin, 1)
    half = layout == "half"
    a = cut(y, 0, count) if half else cut(y, 0, 2 * count, 2)
    b = cut(y, count, 2 * count) if half else cut(y, 1, 2 * count, 2)
    turned = [
        low.op("Sub", low.op("Mul", a, cos), low.op("Mul", b, sin)),
        low.op("Add", low.op("Mul", b, cos), low.op("Mul", a, sin)),
    ]
    if half:
        parts = turned
    else:
        stacked = low.op("Concat", *(low.unsqueeze(t, -1) for t in turned), axis=-1)
        parts = [low.op("Reshape", stacked, low.integers(0, 0, 0, 2 * count))]
    if size > 2 * count:
        parts.append(cut(y, 2 * count, size))
    return parts[0] if len(parts) == 1 else low.op("Concat", *parts, axis=-1)
