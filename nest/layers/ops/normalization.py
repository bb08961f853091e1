"""Normalizations. All of them compute in f32 whatever the tensor's type, and give the tensor's type back."""

from __future__ import annotations

from nest.layers._trace import current, fail
from nest.layers.ops._emit import emit, need_dtype, need_kind, need_rank, need_same, tensor
from nest.layers.tensor import Tensor

__all__ = ["batch_norm", "group_norm", "layer_norm", "rms_norm"]


def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis; the variance is biased."""
    x = _checked("layer_norm", x, weight, bias)
    return emit("layer_norm", [x, weight, bias], x.type, eps=eps)


def rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x*x) + eps) * weight over the last axis (Zhang and Sennrich, 2019)."""
    x = _checked("rms_norm", x, weight)
    return emit("rms_norm", [x, weight], x.type, eps=eps)


def _checked(op: str, x: Tensor, *parameters: Tensor | None) -> Tensor:
    x = tensor(x, op)
    need_kind(x, "float", op)
    if x.rank < 1:
        raise fail(f"{op} takes a tensor of rank 1 or more.", ("x", x.type))
    for name, p in zip(("weight", "bias"), parameters, strict=False):
        if p is not None:
            need_rank(p, 1, op, name)
            need_dtype(op, x=x, **{name: p})
            need_same(
                x.shape[-1], p.shape[0], f"{op}: the last axis of x and {name}", ("x", x.type), (name, p.type)
            )
    return x


def group_norm(x: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float = 1e-5) -> Tensor:
    """layer_norm over each of `groups` groups of channels of x [B, C, ...] (Wu and He, 2018)."""
    x = tensor(x, "group_norm")
    need_kind(x, "float", "group_norm")
    _channels("group_norm", x, weight=weight, bias=bias)
    channels = x.shape[1]
    if not current().same(channels // groups * groups, channels):
        raise fail(f"group_norm: {channels} channels do not split into {groups} groups.", ("x", x.type))
    return emit("group_norm", [x, weight, bias], x.type, groups=int(groups), eps=eps)


def batch_norm(
    x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias a channel of x [B, C, ...], with stored statistics."""
    x = tensor(x, "batch_norm")
    need_kind(x, "float", "batch_norm")
    _channels("batch_norm", x, mean=mean, variance=variance, weight=weight, bias=bias)
    return emit("batch_norm", [x, mean, variance, weight, bias], x.type, eps=eps)


def _channels(op: str, x: Tensor, **parameters: Tensor) -> None:
    if x.rank < 2:
        raise fail(f"{op} takes a tensor [B, C, ...].", ("x", x.type))
    need_dtype(op, x=x, **parameters)
    for name, p in parameters.items():
        need_rank(p, 1, op, name)
        need_same(
            x.shape[1], p.shape[0], f"{op}: the channels of x and {name}", ("x", x.type), (name, p.type)
        )
