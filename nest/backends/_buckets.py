"""Sizes that calls are padded to where each shape is compiled anew."""

from __future__ import annotations

__all__ = ["SMALLEST", "bucket_of"]

SMALLEST = 8
_FINE = 32


def bucket_of(size: int, smallest: int = SMALLEST) -> int:
    """The smallest bucket that holds `size`: powers of two from `smallest` on, and from 32 on half-way ones too.

    So that at most a third of a long row is padding, and a sixth of it on average; a short one costs little anyhow.
    """
    power = max(smallest, 1 << max(0, size - 1).bit_length())
    between = power * 3 // 4
    return between if between > _FINE and size <= between else power
