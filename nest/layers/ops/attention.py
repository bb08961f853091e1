"""Attention and rotary positions."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.types import TensorType
from nest.layers._trace import current, fail
from nest.layers.ops._emit import emit, need_dtype, need_kind, need_rank, need_same, tensor
from nest.layers.tensor import Tensor

__all__ = ["attention", "rope"]


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pos: Tensor | None = None,
    *,
    kv_len: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """softmax(scale * q k^T + bias) v for each head, over the keys that a query may see (Vaswani et al., 2017).

    Args:
        q: [B, H, Q, E]. k: [B, G, K, E]. v: [B, G, K, F]. H is a multiple of G: query head h uses key head
            h // (H//G).
        pos: with `causal`, Int32[B], the slot of the first query of each row; 0 where it is left out. Slot equals
            position.
        kv_len: without `causal`, Int32[B]: keys at and beyond it are padding. Causal attention needs none, since
            rows are packed to the left and no query sees a later slot.
        mask: Bool, broadcasting to [B, H, Q, K]; True lets a query see a key.
        bias: floats that are added to the scores, broadcasting likewise.
        causal: query i sees keys 0 .. pos + i.
        window: with `causal`, query i sees only the last `window` of those keys.
        scale: 1/sqrt(E) where it is left out.
        softcap: scores become softcap * tanh(scores / softcap) before anything is added.
        sinks: [H], a logit a head that takes part in the softmax and has no value.

    Returns:
        [B, H, Q, F]. A query that sees no key gives zeros. The softmax is computed in f32.
    """
    q, k, v = tensor(q, "attention", "q"), tensor(k, "attention", "k"), tensor(v, "attention", "v")
    received = [("q", q.type), ("k", k.type), ("v", v.type)]
    for name, t in (("q", q), ("k", k), ("v", v)):
        need_rank(t, 4, "attention", name)
        need_kind(t, "float", "attention", name)
    dtype = need_dtype("attention", q=q, k=k, v=v, bias=bias, sinks=sinks)
    need_same(q.shape[0], k.shape[0], "attention: the batch of q and k", *received)
    need_same(k.shape[0], v.shape[0], "attention: the batch of k and v", *received)
    need_same(k.shape[1], v.shape[1], "attention: the heads of k and v", *received)
    need_same(k.shape[2], v.shape[2], "attention: the length of k and v", *received)
    need_same(q.shape[3], k.shape[3], "attention: the head size of q and k", *received)
    _check_heads(q.shape[1], k.shape[1], received)
    for name, given, wanted in (("window", window, True), ("pos", pos, True), ("kv_len", kv_len, False)):
        if given is not None and causal is not wanted:
            raise fail(f"attention takes {name} only with causal={wanted}.", *received)
    if window is not None and window < 1:
        raise fail(f"attention: a window is of 1 key or more; {window} was given.", *received)
    scores = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    for name, rows in (("pos", pos), ("kv_len", kv_len)):
        if rows is not None:
            _check_rows(rows, name, q, received)
    for name, extra in (("mask", mask), ("bias", bias)):
        if extra is not None:
            _check_scores(extra, name, scores, received)
    if sinks is not None:
        need_rank(sinks, 1, "attention", "sinks")
        need_same(sinks.shape[0], q.shape[1], "attention: one sink a head", *received, ("sinks", sinks.type))
    return emit(
        "attention",
        [q, k, v, pos, kv_len, mask, bias, sinks],
        TensorType((*q.shape[:3], v.shape[3]), dtype),
        causal=causal,
        window=window,
        scale=scale,
        softcap=softcap,
    )


def _check_heads(heads: Dim, groups: Dim, received: list[tuple[str, TensorType]]) -> None:
    trace = current()
    if trace.same(heads, groups):
        return
    if trace.same(heads // groups * groups, heads):
        return
    raise fail(
        f"attention: the query heads must be a multiple of the key heads, and {heads} is not one of {groups} by what "
        f"is stated.",
        *received,
        hint=f"State it in build: self.require({heads} % {groups} == 0).",
    )


def _check_rows(rows: Tensor, name: str, q: Tensor, received: list[tuple[str, TensorType]]) -> None:
    rows = tensor(rows, "attention", name)
    need_rank(rows, 1, "attention", name)
    need_kind(rows, "int", "attention", name)
    need_same(rows.shape[0], q.shape[0], f"attention: one {name} a row", *received, (name, rows.type))


def _check_scores(
    extra: Tensor, name: str, scores: tuple[Dim, ...], received: list[tuple[str, TensorType]]
) -> None:
    extra = tensor(extra, "attention", name)
    need_kind(extra, "bool" if name == "mask" else "float", "attention", name)
    need_rank(extra, 4, "attention", name)
    for axis, (have, want) in enumerate(zip(extra.shape, scores, strict=True)):
        if not have.same(Dim.constant(1)):
            need_same(
                have, want, f"attention: axis {axis} of {name} must be 1 or", *received, (name, extra.type)
            )


def rope(x: Tensor, pos: Tensor, inv_freq: Tensor, *, layout: str = "half", scale: float = 1.0) -> Tensor:
    """Rotary positions (Su et al., 2021) over the last axis of x [B, H, S, E], computed in f32.

    Args:
        pos: Int32[B, S], or Int32[B] for the position of the first of S places in a row.
        inv_freq: Float32[R], radians a position for each pair; the first 2*R elements of E are rotated.
        layout: `"half"` pairs element i with i + R (GPT-NeoX, Llama on the hub); `"interleaved"` pairs 2i with
            2i + 1 (GPT-J, the original Llama).
        scale: multiplies cosine and sine.
    """
    x, pos, inv_freq = tensor(x, "rope"), tensor(pos, "rope", "pos"), tensor(inv_freq, "rope", "inv_freq")
    received = (("x", x.type), ("pos", pos.type), ("inv_freq", inv_freq.type))
    need_rank(x, 4, "rope")
    need_rank(inv_freq, 1, "rope", "inv_freq")
    need_kind(pos, "int", "rope", "pos")
    if inv_freq.dtype.value != "f32" or inv_freq.dtype.name != "f32":
        raise fail(
            "rope takes Float32 frequencies whatever T is: in half precision, positions collapse.", *received
        )
    if layout not in ("half", "interleaved"):
        raise fail(f"rope knows the layouts 'half' and 'interleaved', and got '{layout}'.", *received)
    if pos.rank not in (1, 2):
        raise fail("rope takes pos [B] or [B, S].", *received)
    need_same(pos.shape[0], x.shape[0], "rope: one row of positions a row of x", *received)
    if pos.rank == 2:
        need_same(pos.shape[1], x.shape[2], "rope: one position for each place", *received)
    room, rotated = x.shape[3].value, (inv_freq.shape[0] * 2).value
    if room is not None and rotated is not None and rotated > room:
        raise fail(f"rope: {rotated} elements are rotated, and the last axis of x has {room}.", *received)
    return emit("rope", [x, pos, inv_freq], x.type, layout=layout, scale=scale)
