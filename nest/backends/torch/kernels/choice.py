"""Which kernel an op has on which device and for which shape. Times are of one H200: see docs/speed.md."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from nest.backends.torch import helpers

__all__ = ["attend", "conv1d", "fuses", "keep_heads", "layer_norm", "rms_norm", "suits"]

_MANY_PRODUCTS = 1500 * 1536
"""Keys and values by heads: more than whisper-tiny's and -base's, for which nest's way is faster, and fewer than
whisper-large's, for which both take the same time."""
_LEAST_KEYS = 1024
_FEW_BLOCKS = 200
"""Attention goes in parts where blocks of 64 queries are fewer: a third more than an H200 has processors."""


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
    """The norm of the last axis, by its mean and deviation."""
    if suits(x):
        from nest.backends.torch.kernels.many_rows import Norm, norm_rows

        return norm_rows(x, Norm("layer", weight, bias, eps))
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x / sqrt(mean(x*x) + eps) * weight over the last axis."""
    if suits(x):
        from nest.backends.torch.kernels.many_rows import Norm, norm_rows

        return norm_rows(x, Norm("rms", weight, None, eps))
    return helpers.rms_norm(x, weight, eps)


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    stride: int = 1,
    padding: int = 0,
    activation: str | None = None,
) -> Tensor:
    """activation(conv(x) + bias) over time: [B, C, T] to [B, N, T'].

    The kernel takes and gives time before channels, and what it gives is a view of that, so that no copy is made
    between two of them. A weight that lies in memory as [N, taps, C] is not copied either.

    Args:
        activation: None or `gelu`, the error function's.
    """
    if suits(x) and weight.shape[1] % 8 == 0:
        from nest.backends.torch.kernels.conv import conv_rows

        y = conv_rows(
            x.transpose(1, 2).contiguous(), weight.transpose(1, 2).contiguous(), bias,
            stride=stride, padding=padding, activation=activation,
        )  # fmt: skip
        return y.transpose(1, 2)
    y = F.conv1d(x, weight, bias, stride=stride, padding=padding)
    return y if activation is None else F.gelu(y)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`helpers.attend`; few heads with many queries and keys see parts of the keys at once."""
    B, H, Q, E = q.shape
    plain = attn_mask is None and not is_causal and not enable_gqa
    idle = Q >= 64 and k.shape[2] >= _LEAST_KEYS and B * H * -(-Q // 64) <= _FEW_BLOCKS
    fits = E in (32, 64, 128) and all(t.stride(3) == 1 for t in (q, k, v))
    if plain and idle and fits and suits(q):
        from nest.backends.torch.kernels.encoder_attention import attend_all

        return attend_all(q, k, v, scale=scale)
    return helpers.attend(q, k, v, attn_mask, is_causal, scale, enable_gqa)


def keep_heads(first: Tensor, second: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Put x weight^T + bias by heads where it is kept: the first half of its columns here, the second there.

    Args:
        first, second: [B, H, S, E].
        x: [B, S, K]; weight: [2 H E, K].
    """
    B, H, S, E = first.shape
    # The library's product is so much faster for large ones that it makes up for the copies.
    if B * S * weight.shape[0] < _MANY_PRODUCTS and E in (16, 32, 64, 128) and suits(x) and x.is_contiguous():
        from nest.backends.torch.kernels.products import linear_heads

        return linear_heads(first, second, x, weight, bias)
    for state, half in zip((first, second), F.linear(x, weight, bias).chunk(2, dim=-1), strict=True):
        state.copy_(half.reshape(B, S, H, E).transpose(1, 2))
    return None


def suits(x: Tensor) -> bool:
    """Whether kernels of nest's own take it."""
    return (
        fuses(x.device, x.dtype)
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and x.numel() > 0
        and x.device.index == torch.cuda.current_device()
    )


def fuses(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether there are kernels for numbers of this type on this device."""
    return device.type == "cuda" and dtype in (torch.float16, torch.bfloat16) and _triton(device.index or 0)


@cache
def _triton(device: int) -> bool:
    """Whether there is Triton, and a device that its matrix products of 16 bits run on."""
    return find_spec("triton") is not None and torch.cuda.get_device_capability(device) >= (8, 0)
