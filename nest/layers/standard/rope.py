"""Frequencies of rotary positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["rope_frequencies"]


def rope_frequencies(size: int, theta: float, scaling: Sequence[float] | None = None) -> tuple[float, ...]:
    """Radians a position for each of the size//2 pairs of a head, for `constant(..., "f32")` and `rope`.

    Pair i turns by theta ** (-2i/size) (Su et al., 2021, "RoFormer", arXiv 2104.09864). They are computed here and
    not in the program: a power in f32 is off by enough that at position 8000 an angle would be off by a hundredth.

    Args:
        size: elements of a head that are turned; even.
        theta: the base, 10000 in the paper.
        scaling: (factor, low, high, length) of Llama 3.1 (arXiv 2407.21783). `length` is the context that the model
            was first trained for. Pairs that turn more than `high` times in it stay as they are, those that turn
            less than `low` times are slowed down by `factor`, and between the two it fades from one to the other.

    Raises:
        ValueError: the size is odd, or `scaling` is not four numbers.
    """
    if size % 2:
        raise ValueError(f"rotary positions turn pairs, and {size} elements are no whole pairs.")
    if scaling is not None and len(scaling) != 4:
        raise ValueError(f"rope scaling is (factor, low, high, length); {list(scaling)} came.")
    plain = [theta ** (-2 * i / size) for i in range(size // 2)]
    return tuple(plain if scaling is None else (_slowed(f, *scaling) for f in plain))


def _slowed(frequency: float, factor: float, low: float, high: float, length: float) -> float:
    """A frequency after Llama 3.1's scaling."""
    turns = length * frequency / (2 * math.pi)
    kept = min(max((turns - low) / (high - low), 0.0), 1.0)
    return kept * frequency + (1 - kept) * frequency / factor
