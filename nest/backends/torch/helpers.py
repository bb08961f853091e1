"""Functions that generated torch source calls. Their text is copied into it, so each stands by itself."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

__all__ = ["HELPERS"]


def update_cache(cache: Tensor, value: Tensor, pos: Tensor | int, axis: int) -> Tensor:
    """Write `value` in place at the slots pos, pos+1, ... of each row (axis 0) along `axis`; the whole cache."""
    length = value.shape[axis]
    if isinstance(pos, int):
        cache.narrow(axis, pos, length).copy_(value)
        return cache
    slots = pos.long()[:, None]
    if length > 1:
        slots = slots + torch.arange(length, device=cache.device)
    shape = [1] * cache.ndim
    shape[0], shape[axis] = slots.shape
    return cache.scatter_(axis, slots.view(shape).expand_as(value), value)


def causal_mask(pos: Tensor, queries: int, keys: int) -> Tensor:
    """True [B, 1, queries, keys] where query i, at slot pos + i of its row, sees the key of a slot."""
    last = pos[:, None]
    if queries > 1:
        last = last + torch.arange(queries, device=pos.device)
    return (torch.arange(keys, dtype=last.dtype, device=pos.device) <= last[:, :, None])[:, None]


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pos: Tensor | None = None,
    kv_len: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    """softmax(scale * q k^T + bias) v over the keys that each query sees; zeros where it sees none. In f32."""
    B, H, Q, E = q.shape
    G, K = k.shape[1:3]
    k, v = (t.repeat_interleave(H // G, dim=1) if H != G else t for t in (k, v))
    scores = q.float() @ k.float().transpose(2, 3) * (E**-0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.float()
    slots = torch.arange(K, device=q.device)
    seen = torch.ones(B, 1, Q, K, dtype=torch.bool, device=q.device)
    if causal:
        first = torch.zeros(B, dtype=torch.int32, device=q.device) if pos is None else pos
        last = (first[:, None] + torch.arange(Q, device=q.device))[:, None, :, None]
        seen = seen & (slots <= last)
        if window is not None:
            seen = seen & (slots > last - window)
    if kv_len is not None:
        seen = seen & (slots < kv_len[:, None, None, None])
    if mask is not None:
        seen = seen & mask
    scores = scores.masked_fill(~seen, float("-inf"))
    if sinks is not None:
        scores = torch.cat([scores, sinks.float().view(1, H, 1, 1).expand(B, H, Q, 1)], dim=3)
    peak = scores.amax(dim=3, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - peak)
    total = weights.sum(dim=3, keepdim=True)
    weights = (weights / torch.where(total == 0, 1.0, total))[..., :K]
    return (weights @ v.float()).to(q.dtype)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`F.scaled_dot_product_attention`, which on a GPU gives each head one block: few queries go as matrix products."""
    if not q.is_cuda or q.shape[2] > 4 or is_causal or enable_gqa:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
        )
    scores = torch.matmul(q * (q.shape[3] ** -0.5 if scale is None else scale), k.transpose(2, 3))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=3), v)


def attend_shared(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, scale: float | None = None) -> Tensor:
    """One query [B, H, 1, E] over keys [B, G, K, E]: heads that share keys go as queries, so that none is repeated."""
    B, H, _, E = q.shape
    shared = q.reshape(B, k.shape[1], H // k.shape[1], E)
    return F.scaled_dot_product_attention(shared, k, v, attn_mask=attn_mask, scale=scale).reshape(B, H, 1, -1)


def table(values: list[float], like: Tensor) -> Tensor:
    """Numbers on the device of `like`. A CUDA graph cannot copy them from the host, and makes them one by one."""
    if like.is_cuda and torch.cuda.is_current_stream_capturing():
        return torch.stack([torch.full((), v, dtype=torch.float32, device=like.device) for v in values])
    return torch.tensor(values, dtype=torch.float32, device=like.device)


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x / sqrt(mean(x*x) + eps) * weight over the last axis, in f32."""
    h = x.float()
    h = h * torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + eps)
    return (h if weight is None else h * weight.float()).to(x.dtype)


def rope(x: Tensor, pos: Tensor, inv_freq: Tensor, layout: str, scale: float) -> Tensor:
    """Rotate the first 2R elements of x [B, H, S, E] by pos times R frequencies, in f32."""
    if pos.ndim == 1:
        pos = pos[:, None] if x.shape[2] == 1 else pos[:, None] + torch.arange(x.shape[2], device=pos.device)
    angle = pos[:, None, :, None] * inv_freq
    cos, sin = angle.cos(), angle.sin()
    if scale != 1.0:
        cos, sin = cos * scale, sin * scale
    R = inv_freq.shape[0]
    part = x[..., : 2 * R].float()
    if layout == "half":
        a, b = part.chunk(2, dim=3)
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=3)
    else:
        a, b = part[..., 0::2], part[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=4).flatten(3)
    turned = turned.to(x.dtype)
    return turned if x.shape[3] == 2 * R else torch.cat([turned, x[..., 2 * R :]], dim=3)


def peak(x: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Where the largest of x + bias is along the last axis, that, and the sum of exp(what each is less)."""
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    y = y if bias is None else y + bias
    largest, place = y.max(-1, keepdim=True)
    mass = (y - largest).exp().sum(-1)
    return place[..., 0].to(torch.int32), largest[..., 0].to(x.dtype), mass.to(x.dtype)


def top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last axis in falling order, with their indices; the first of equals comes first."""
    n = x.shape[-1]
    if n < 32 * k or x.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
        return values[..., :k], indices[..., :k].to(torch.int32)
    # torch.topk is many times faster than sorting and takes any of equals: so of integers, of which none are equal. In
    # order of its bits a float is in order, the negative ones backwards; the lower half is how early an element comes.
    inf = float("inf")
    bits = (x.float().nan_to_num(inf, inf, -inf) + 0.0).view(torch.int32)
    order = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long() << 32
    keys = torch.topk(order + torch.arange(n - 1, -1, -1, device=x.device), k, dim=-1).values
    places = n - 1 - (keys & 0xFFFFFFFF)
    return x.gather(-1, places), places.to(torch.int32)


def quantized_linear(x: Tensor, values: Tensor, scales: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias; the weight is values [In, Out] times scales [Out], or groups of two a byte less 8."""
    if values.ndim == 2:
        weight = (values * scales).to(x.dtype).T
    else:
        nibbles = torch.stack([values & 15, values >> 4], -1).flatten(-2).float() - 8
        weight = (nibbles * scales[..., None]).flatten(1).to(x.dtype)
    return F.linear(x, weight, bias)


def expert_linear(x: Tensor, weight: Tensor, experts: Tensor) -> Tensor:
    """Row n of x [N, In] times matrix experts[n] of weight [Experts, Out, In]."""
    return torch.einsum("ni,noi->no", x, weight[experts.long()])


def repeat(
    condition: Callable[..., Tensor],
    body: Callable[..., tuple[Tensor, ...]],
    carry: tuple[Tensor, ...],
    most: int,
    state: SimpleNamespace | None = None,
) -> tuple[Tensor, ...]:
    """Repeat `body` on the carry while `condition` holds, at most `most` times."""
    runner = getattr(state, "runner", None)
    if runner is not None:
        carry = runner(condition, body, carry, most)
        most = 0
    for _ in range(most):
        if not condition(*carry):
            break
        carry = body(*carry)
    return carry


HELPERS = {
    f.__name__: f
    for f in (
        update_cache,
        causal_mask,
        attention,
        rms_norm,
        rope,
        peak,
        top_k,
        expert_linear,
        quantized_linear,
        repeat,
        attend_shared,
        table,
    )
}
