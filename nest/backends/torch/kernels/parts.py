"""What attention leaves where blocks of their own see parts of the keys, and how it becomes one."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from nest.backends.torch.kernels.launching import launch_options, wait

__all__ = ["Parts", "combined"]


@triton.jit
def combined(
    values, lse, row, rows, first,
    SPLITS: tl.constexpr, SPLITS_UP: tl.constexpr, HEADS: tl.constexpr, HEADS_UP: tl.constexpr, E: tl.constexpr,
    W: tl.constexpr,
):  # fmt: skip
    """Heads `first` to first + HEADS_UP of a row, [HEADS_UP, W], from its parts; a head has E elements, W at most."""
    splits, heads, width = tl.arange(0, SPLITS_UP), first + tl.arange(0, HEADS_UP), tl.arange(0, W)
    of = splits.to(tl.int64) * rows + row
    there = (splits < SPLITS)[:, None] & (heads < HEADS)[None, :]
    logs = tl.load(lse + of[:, None] * HEADS + heads[None, :], mask=there, other=float("-inf"))
    shares = tl.where(there, tl.exp2(logs - tl.max(logs, 0)[None, :]), 0.0)
    total = tl.sum(shares, 0)
    shares = shares / tl.where(total > 0, total, 1.0)[None, :]
    at = of[:, None, None] * (HEADS * E) + heads[None, :, None] * E + width[None, None, :]
    if W == E:
        held = tl.load(values + at, mask=there[:, :, None], other=0.0)
    else:
        held = tl.load(values + at, mask=there[:, :, None] & (width < E)[None, None, :], other=0.0)
    return tl.sum(shares[:, :, None] * held, 0)


@triton.jit
def _combine_kernel(
    values, lse, y, rows,
    SPLITS: tl.constexpr, SPLITS_UP: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, W: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """One head of a row."""
    wait(PDL)
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    whole = combined(values, lse, row, rows, head, SPLITS, SPLITS_UP, HEADS, 1, E, W)
    width = tl.arange(0, W)[None, :]
    tl.store(y + (row * HEADS + head) * E + width, whole.to(y.dtype.element_ty), mask=width < E)


class Parts(NamedTuple):
    """An attention's result in parts.

    Attributes:
        values: [splits, B, S, H E], f32: each part's weighted mean of values, zero where it saw no key.
        lse: [splits, B, S, H], f32: the logarithm to base 2 of its sum of exponentials, -inf where it saw no key.
        dtype: of the whole.
    """

    values: Tensor
    lse: Tensor
    dtype: torch.dtype

    @property
    def splits(self) -> int:
        return self.values.shape[0]

    @property
    def shape(self) -> torch.Size:
        """Of the whole, [B, S, H E]."""
        return self.values.shape[1:]

    @property
    def width(self) -> int:
        """Of a head."""
        return self.values.shape[-1] // self.lse.shape[-1]

    def whole(self, *, pdl: bool | None = None) -> Tensor:
        """[B, S, H E], by a kernel of its own."""
        y = torch.empty(self.shape, dtype=self.dtype, device=self.values.device)
        H, rows = self.lse.shape[-1], self.shape[:-1].numel()
        _combine_kernel[(rows, H)](
            self.values, self.lse, y, rows, SPLITS=self.splits, SPLITS_UP=triton.next_power_of_2(self.splits),
            HEADS=H, E=self.width, W=triton.next_power_of_2(self.width), num_warps=1, **launch_options(pdl),
        )  # fmt: skip
        return y
