"""The largest batch, and the longest context, that fit into so much memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nest.footprint.report import Model

__all__ = ["Limits", "limits"]

_MOST = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What fits.

    Attributes:
        limit: bytes.
        batch: the most rows at the context asked for; 0 where not even one fits.
        context: the longest context at the batch asked for; 0 where none fits, None where the model has no context.
    """

    limit: int
    batch: int
    context: int | None


def limits(model: Model, limit: int, *, batch: int = 1, context: int | None = None) -> Limits:
    """The largest batch at a context, and the longest context at a batch, whose totals are at most `limit` bytes.

    Args:
        context: what the definition admits if left out.
    """
    rows = _largest(lambda n: model.memory(n, context).total <= limit, _MOST)
    longest = model.longest()
    length = None if longest is None else _largest(lambda n: model.memory(batch, n).total <= limit, longest)
    return Limits(limit, rows, length)


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number from 1 to `most` that fits, if all smaller ones do; 0 if none does."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high < most and fits(high):
        low, high = high, high * 2
    high = min(high, most)
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
