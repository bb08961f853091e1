"""Listening and decoding as one call."""

from __future__ import annotations

from typing import Any

from nest.layers.annotations import Fill, Float, Float32, Int32
from nest.layers.tensor import Tensor
from nest.loops.greedy import greedy

__all__ = ["hear"]


def hear(
    model: Any,
    mel: Float[Tensor, "Batch Mels Frames"],
    tokens: Int32[Tensor, "Batch S"],
    out: Int32[Tensor, "Batch N"],
    end: Int32[Tensor, ""],
    bias: Float32[Tensor, "Vocab"] = Fill("0"),
    first_bias: Float32[Tensor, "Vocab"] = Fill("0"),
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Int32[Tensor, "Batch N"], Int32[Tensor, "Batch"], Float32[Tensor, "Batch"]]:
    """`listen` to a window and decode it with `greedy`: one call from log-mel frames to ids.

    Takes what `listen` takes, then what `greedy` takes, and gives what `greedy` gives.
    """
    model.listen(mel)
    return greedy(model, tokens, out, end, bias, first_bias, lengths)
