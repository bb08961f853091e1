"""Rows of unequal length as batches: sorted, padded at the end, and put back in order afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest.backends._buckets import bucket_of

__all__ = ["PaddedBatch", "batches", "bucket", "power_of_two"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PaddedBatch:
    """Some rows beside each other.

    Attributes:
        rows: which of the given rows these are, in order.
        tokens: Int32 [B, S]; zeros after a row's end. B may be more than there are rows: what is left is one zero long.
        lengths: Int32 [B].
    """

    rows: tuple[int, ...]
    tokens: Array
    lengths: Array


def batches(
    rows: Sequence[Sequence[int]], *, batch_size: int, budget: int, longest: int, few_shapes: bool = False
) -> Iterator[PaddedBatch]:
    """Batches of rows whose lengths are alike, the longest first, so that a lack of memory shows at once.

    Args:
        rows: the ids of each row, at least one.
        batch_size: at most so many rows beside each other.
        budget: at most so many tokens, padding counted; a single row may be longer.
        longest: no batch is padded beyond it.
        few_shapes: pad to few different shapes, for what compiles each anew: lengths to buckets, as backends have them,
            rows to as many as fit, or in a bucket's last batch to a power of two.
    """
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    start = 0
    while start < len(order):
        width = len(rows[order[start]])
        if few_shapes:
            width = bucket(width, longest)
        fitting = max(1, min(batch_size, budget // width))
        chosen = order[start : start + fitting]
        if few_shapes:
            # A bucket's last batch takes no shorter rows, which would be padded for nothing.
            chosen = [i for i in chosen if bucket(len(rows[i]), longest) == width]
        height = power_of_two(len(chosen), fitting) if few_shapes else len(chosen)
        yield _padded(rows, chosen, height, width)
        start += len(chosen)


def bucket(size: int, largest: int) -> int:
    """The smallest bucket that holds `size`, and no more than `largest`."""
    return min(largest, bucket_of(size))


def power_of_two(size: int, largest: int) -> int:
    """The smallest power of two that holds `size`, and no more than `largest`."""
    return min(largest, 1 << (size - 1).bit_length())


def _padded(rows: Sequence[Sequence[int]], chosen: Sequence[int], height: int, width: int) -> PaddedBatch:
    tokens = np.zeros((height, width), np.int32)
    lengths = np.ones(height, np.int32)
    for place, index in enumerate(chosen):
        tokens[place, : len(rows[index])] = rows[index]
        lengths[place] = len(rows[index])
    return PaddedBatch(tuple(chosen), tokens, lengths)
