"""Splitting and merging heads."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.layers.tensor import Tensor

__all__ = ["merge_heads", "split_heads"]


def split_heads(x: Tensor, heads: int | Dim) -> Tensor:
    """[B, N, D] -> [B, heads, N, D//heads]."""
    B, N, D = x.shape
    return x.reshape(B, N, heads, D // heads).permute(0, 2, 1, 3)


def merge_heads(x: Tensor) -> Tensor:
    """[B, heads, N, E] -> [B, N, heads*E]."""
    B, heads, N, E = x.shape
    return x.permute(0, 2, 1, 3).reshape(B, N, heads * E)
