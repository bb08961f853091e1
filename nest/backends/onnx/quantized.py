"""Matrices in 8 bits: see `nest.ir.parammap.Quantized`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["quantized"]

Array = npt.NDArray[Any]

_ROWS = 4096
"""Rows that are worked on at a time."""
MOST = 127
"""A row's largest value."""
STEPS = 63
"""An input's largest value. Without VNNI, as on AVX2, the runtime adds pairs of products in 16 bits, where
2 * 127 * 127 is the most that fits; beyond it sums are silently wrong."""
OFFSET = 64
"""What is added to the values of an input, which are then unsigned."""
_LARGE = 1e30
"""A scale over it, or one that is no number, is NaN: products with such rows are then made in full."""


def quantized(matrix: Array) -> dict[str, Array]:
    """The parts of a matrix f32 [Out, In]; it may hold anything, as what becomes of it is seen where it is used."""
    with np.errstate(all="ignore"):
        return _parts(matrix)


def _parts(matrix: Array) -> dict[str, Array]:
    columns = _columns(matrix)
    out, width = matrix.shape
    values, lengths = np.empty((width, out), np.int8), np.empty((2, out), np.float32)
    scales, offsets = np.empty(out, np.float32), np.empty(out, np.float32)
    for first in range(0, out, _ROWS):
        rows = np.asarray(matrix[first : first + _ROWS], np.float32) / columns
        scale = np.maximum(rows.max(1), -rows.min(1)) / np.float32(MOST)
        scale[scale == 0] = 1
        scale[~(scale <= _LARGE)] = np.nan
        steps = np.rint(rows / scale[:, None])
        kept = steps * scale[:, None]
        where = slice(first, first + len(rows))
        values[:, where], scales[where], offsets[where] = steps.T, scale, steps.sum(1) * scale * OFFSET
        # In double precision, in which no square is 0 or infinite.
        both = (np.asarray(x, np.float64) for x in (rows - kept, kept))
        lengths[0, where], lengths[1, where] = (np.linalg.norm(x, axis=1) for x in both)
    return {"values": values, "columns": columns, "scales": scales, "offsets": offsets, "lengths": lengths}


def _columns(matrix: Array) -> Array:
    """The largest of each column, 1 in the middle."""
    largest = np.maximum(matrix.max(0), -matrix.min(0)).astype(np.float32)
    positive = largest[largest > 0]
    if not len(positive):
        return np.ones_like(largest)
    return np.asarray(np.where(largest > 0, largest / np.median(positive), 1), np.float32)
