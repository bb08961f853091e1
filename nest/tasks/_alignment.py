"""Attention to times: which moment of a window each token of a text was heard in.

The method is that of the Whisper reference implementation: weights of the alignment heads are normalised over the
tokens, smoothed over time, averaged, and a path through them is found by dynamic time warping.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["normalised", "onsets", "path", "smoothed", "spans"]

WIDTH = 7
"""Audio positions, of 20 ms each, that a median is taken over."""

Floats = NDArray[np.floating[Any]]


def onsets(weights: Floats, prompt: int) -> NDArray[np.int64]:
    """Where each token after the prompt begins, and where the last one ends, in audio positions.

    Args:
        weights: [heads, tokens, positions], how much each token's query attends to each position, over the recorded
            part of the window: prompt, text and end token, teacher-forced.
        prompt: how many of the tokens come before the text; at least 1.

    Returns:
        Int64 [text tokens + 1], none smaller than the one before it.
    """
    heat = smoothed(normalised(weights)).mean(axis=0)
    # The query of a token is where the next one is chosen, so the text's rows begin with the prompt's last token.
    rows, columns = path(-heat[prompt - 1 : -1])
    first = np.concatenate([[True], np.diff(rows) > 0])
    return np.asarray(columns[first])


def normalised(weights: Floats) -> NDArray[np.float64]:
    """Each token's weights made to sum to 1, then each position's to have mean 0 and deviation 1 over the tokens.

    What all tokens attend to alike, as a head's resting place, thereby counts for nothing.
    """
    exact = weights.astype(np.float64)
    exact /= np.maximum(exact.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    deviation = exact.std(axis=-2, keepdims=True)
    return np.asarray((exact - exact.mean(axis=-2, keepdims=True)) / np.where(deviation > 0, deviation, 1))


def smoothed(weights: Floats, width: int = WIDTH) -> NDArray[np.float64]:
    """The median of `width` neighbours along the last axis, which is mirrored at its ends."""
    edge = width // 2
    padded = np.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(edge, edge)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1)
    # Several times as fast as numpy's median of so few numbers.
    return np.asarray(np.partition(windows, edge, axis=-1)[..., edge], np.float64)


def path(cost: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cheapest path from the first cell of `cost` [rows, columns] to the last one, by dynamic time warping.

    A step goes one row down, one column on, or both; a path costs the sum of its cells. Of equal ways the diagonal is
    taken, then the one down.

    Returns:
        Rows and columns of the path's cells, in order.
    """
    total = _totals(cost.astype(np.float64))
    row, column = cost.shape[0] - 1, cost.shape[1] - 1
    cells = [(row, column)]
    while row or column:
        ways = [(row - 1, column - 1), (row - 1, column), (row, column - 1)]
        row, column = min((way for way in ways if min(way) >= 0), key=lambda way: total[way])
        cells.append((row, column))
    found = np.array(cells[::-1], dtype=np.int64)
    return found[:, 0], found[:, 1]


def _totals(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cost of the cheapest path to each cell.

    total[i, j] = cost[i, j] + min(above[j], total[i, j - 1]), with `above` the better of the two cells of the row
    before. Less the row's running sums, that is a running minimum, so that a row is a few calls of numpy.
    """
    sums = np.cumsum(cost, axis=1)
    total = np.empty_like(cost)
    total[0] = sums[0]
    for row in range(1, len(cost)):
        before = total[row - 1]
        above = np.minimum(before, np.concatenate([[np.inf], before[:-1]]))
        total[row] = sums[row] + np.minimum.accumulate(above - sums[row] + cost[row])
    return total


def spans(times: Floats, end: float, least: float = 0.02) -> NDArray[np.float64]:
    """Starts and ends in seconds, [words, 2], made such that none lies before the one before it.

    A word lasts `least` at least, and all lie from 0 to `end`; where so many do not fit, each lasts an equal part.
    """
    flat = np.asarray(times, np.float64).reshape(-1)
    gap = min(least, end / max(len(times), 1))
    steps = gap * np.ceil(np.arange(len(flat)) / 2)  # the least time from the first start to each
    # With the steps taken away, to follow at the least distance is not to fall.
    level = np.maximum.accumulate(np.clip(flat - steps, 0, None))
    # Rounding may leave the last bit of the last one over the end.
    return np.minimum(np.minimum(level, max(end - steps[-1], 0)) + steps, end).reshape(-1, 2)
