"""The ops that plan `fast` fuses on a GPU: by one kernel each where there is one, in steps of torch elsewhere.

Generated source calls these. Kernels are for few rows of 16-bit numbers: a step of a decoder, or a short prompt; more
rows are best multiplied by the vendor's library. What the steps compute is what every kernel is held to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from nest.backends.torch import helpers, kernels
from nest.backends.torch.kernels.choice import fuses, suits

if TYPE_CHECKING:
    from nest.backends.torch.kernels.parts import Parts

__all__ = [
    "attend_heard",
    "attend_step",
    "embed_tokens",
    "fuses",
    "is_in",
    "linear_add",
    "norm_linear",
    "peak_of_linear",
    "small",
]

_ROWS = 64
"""Products of more rows are not few."""

_NEW = 16
"""More tokens at once are no step."""


def _few(x: Tensor, rows: int) -> bool:
    return suits(x) and 0 < rows <= _ROWS


def norm_linear(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    *,
    kind: str,
    eps: float,
    activation: str | None = None,
    gated: bool = False,
) -> Tensor:
    """activation(norm(x) weight^T + bias); where it is gated, of the first half of it, times the second half.

    Args:
        x: [..., K]. weight: [N, K], or [2 N, K] where it is gated. kind: `layer` or `rms`.
    """
    if _few(x, x.numel() // x.shape[-1]):
        from nest.backends.torch.kernels.few_rows import linear_few
        from nest.backends.torch.kernels.many_rows import Norm

        norm = Norm(kind, norm_weight, norm_bias, eps)
        return linear_few(x.contiguous(), weight, bias, norm=norm, activation=activation, gated=gated)
    y = F.linear(_norm(x, norm_weight, norm_bias, kind, eps), weight, bias)
    if gated:
        first, second = y.chunk(2, dim=-1)
        return _activated(first, activation) * second
    return _activated(y, activation)


def linear_add(x: Tensor | Parts, weight: Tensor, bias: Tensor | None, residual: Tensor) -> Tensor:
    """residual + x weight^T + bias; x may be what attention left in parts."""
    if not isinstance(x, Tensor) or _few(x, x.numel() // x.shape[-1]):
        from nest.backends.torch.kernels.few_rows import linear_few

        given = x.contiguous() if isinstance(x, Tensor) else x
        return linear_few(given, weight, bias, residual=residual.contiguous())
    return residual + F.linear(x, weight, bias)


def peak_of_linear(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    *,
    kind: str | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`peak` of norm(x) weight^T + bias, products in f32: index, largest and sum of each row, [rows].

    Args:
        x: [rows, K], or [rows, 1, K]. bias: [N] or [rows, N], f32, or None. kind: None for no norm.
    """
    rows = x.reshape(-1, x.shape[-1])
    if _few(rows, rows.shape[0]):
        from nest.backends.torch.kernels.likeliest import likeliest
        from nest.backends.torch.kernels.many_rows import Norm

        norm = None if kind is None else Norm(kind, norm_weight, norm_bias, eps)
        return likeliest(rows.contiguous(), weight, bias, norm=norm)
    h = rows if kind is None else _norm(rows, norm_weight, norm_bias, kind, eps)
    wide = torch.promote_types(x.dtype, torch.float32)
    return helpers.peak(F.linear(h.to(wide), weight.to(wide)), bias)


def embed_tokens(ids: Tensor, table: Tensor, positions: Tensor | None, pos: Tensor | None) -> Tensor:
    """table[max(ids, 0)], with positions[pos] added where there are some: [B, 1, D].

    Args:
        ids: i32 [B]. table: [N, D]. positions: [P, D]. pos: i32 [B].
    """
    given = ids.reshape(-1, 1)
    if _few(table, given.shape[0]):
        from nest.backends.torch.kernels.likeliest import embed

        return embed(given, table, positions, pos)
    found = F.embedding(given.clamp(min=0), table)
    return found if positions is None or pos is None else found + F.embedding(pos.reshape(-1, 1), positions)


def attend_heard(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None, split: bool = False
) -> Tensor | Parts:
    """softmax(scale q k^T) v of queries over all keys.

    Args:
        q: [B, S, H E]. k, v: [B, KV, K, E].
        split: the result may be in parts.

    Returns:
        [B, S, H E].
    """
    B, S, columns = q.shape
    KV, _, E = k.shape[1:]
    if S <= _NEW and k.stride(3) == v.stride(3) == 1 and _few(q, B * S):
        from nest.backends.torch.kernels.heard_attention import attend_heard as attend

        return _whole(attend(q.contiguous(), k, v, scale=scale), split)
    heads = q.reshape(B, S, columns // E, E).transpose(1, 2)
    grouped = columns // E != KV
    return _joined(kernels.attend(heads, k, v, scale=scale, enable_gqa=grouped))


def attend_step(
    packed: Tensor,
    pos: Tensor | int | None,
    inv_freq: Tensor | None,
    q_norm: Tensor | None,
    k_norm: Tensor | None,
    k_cache: Tensor,
    v_cache: Tensor,
    *,
    heads: int,
    kv_heads: int,
    width: int,
    scale: float | None,
    layout: str | None,
    rope_scale: float,
    eps: float,
    split: bool = False,
) -> Tensor | Parts:
    """Put new keys and values into their caches from slot `pos` on, and attend causally to all slots so far.

    Args:
        packed: [B, S, (heads + 2 kv_heads) width]: queries, keys and values side by side.
        pos: i32 [B], or None for the first slot.
        inv_freq: frequencies that queries and keys are turned by, or None. q_norm, k_norm: [width], or None.
        k_cache, v_cache: [B, kv_heads, slots, width]. split: the result may be in parts.

    Returns:
        [B, S, heads * width].
    """
    B, S, _ = packed.shape
    at = pos if isinstance(pos, Tensor) else None
    if S <= _NEW and k_cache.stride(3) == v_cache.stride(3) == 1 and _few(packed, B * S):
        from nest.backends.torch.kernels.step_attention import Heads, Rotation
        from nest.backends.torch.kernels.step_attention import attend_step as attend

        turn = None if inv_freq is None else Rotation(inv_freq, layout != "half", rope_scale)
        made = attend(
            packed.contiguous(), k_cache, v_cache, at, Heads(heads, kv_heads, width), scale=scale, rotation=turn,
            q_norm=q_norm, k_norm=k_norm, eps=eps,
        )  # fmt: skip
        return _whole(made, split)
    rows = packed.reshape(B, S, heads + 2 * kv_heads, width)
    cut = torch.split(rows, [heads, kv_heads, kv_heads], dim=2)
    q, k, v = (t.transpose(1, 2) for t in cut)
    if q_norm is not None and k_norm is not None:
        q, k = helpers.rms_norm(q, q_norm, eps), helpers.rms_norm(k, k_norm, eps)
    if inv_freq is not None:
        places = torch.zeros(B, dtype=torch.int32, device=packed.device) if at is None else at
        q, k = (helpers.rope(t, places, inv_freq, layout or "half", rope_scale) for t in (q, k))
    helpers.update_cache(k_cache, k, 0 if at is None else at, axis=2)
    helpers.update_cache(v_cache, v, 0 if at is None else at, axis=2)
    grouped = heads != kv_heads
    if at is None:
        return _joined(
            F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=grouped)
        )
    mask = helpers.causal_mask(at, S, k_cache.shape[2])
    if grouped and S == 1:
        return _joined(helpers.attend_shared(q, k_cache, v_cache, mask, scale=scale))
    return _joined(kernels.attend(q, k_cache, v_cache, attn_mask=mask, scale=scale, enable_gqa=grouped))


def is_in(values: Tensor, among: Tensor) -> Tensor:
    """Whether each number of [B] is one of [N]."""
    return (values[:, None] == among).any(dim=1)


def small(text: str, rows: int, like: Sequence[str | int], *inputs: Any) -> tuple[Tensor, ...]:
    """Run a kernel that `nest.backends.torch.small` has written.

    Args:
        text: its source. rows: which of the inputs has a number for each row.
        like: of each result its type, with `:` for a number a row, `:1` for a column of them; or which input it is.
    """
    from nest.backends.torch.kernels.launching import launch_options

    given = inputs[rows]
    B = given.shape[0]
    results, stored = [], []
    for kind in like:
        if isinstance(kind, int):
            results.append(inputs[kind])
            continue
        name, mark, column = kind.partition(":")
        shape = (B,) * bool(mark) + (1,) * bool(column)
        results.append(torch.empty(shape, dtype=_DTYPES[name], device=given.device))
        stored.append(results[-1])
    lanes = 1 << max(0, B - 1).bit_length()
    _compiled(text)[(1,)](*inputs, *stored, B, LANES=lanes, num_warps=1, **launch_options(None))
    return tuple(results)


_DTYPES = {"i32": torch.int32, "f32": torch.float32, "bool": torch.bool}


@cache
def _compiled(text: str) -> Any:
    from nest.backends.generated import load_generated

    return load_generated(text, "small").kernel


def _joined(attended: Tensor) -> Tensor:
    B, H, S, E = attended.shape
    return attended.transpose(1, 2).reshape(B, S, H * E)


def _whole(made: Tensor | Parts, split: bool) -> Tensor | Parts:
    return made if split or isinstance(made, Tensor) else made.whole()


def _norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, kind: str, eps: float) -> Tensor:
    if kind == "rms" or weight is None:
        return kernels.rms_norm(x, weight, eps)
    return kernels.layer_norm(x, weight, bias, eps)


def _activated(x: Tensor, activation: str | None) -> Tensor:
    if activation is None:
        return x
    if activation.startswith("gelu"):
        return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")
    made: Tensor = getattr(F, activation)(x)
    return made
