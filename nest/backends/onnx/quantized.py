"""Matrices in 8 bits: see `nest.ir.parammap.Quantized`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["quantized"]

Array = npt.NDArray[Any]

_ROWS = 4096
"""Rows that are worked on at a time."""
_MOST = 127
OFFSET = 128
"""What is added to the values of an input, which are then unsigned."""


def quantized(matrix: Array, part: str) -> Array:
    """A part of a matrix f32 [Out, In]."""
    columns = _columns(matrix)
    if part == "columns":
        return columns
    out, width = matrix.shape
    made = {
        "values": np.empty((width, out), np.int8) if part == "values" else None,
        "scales": np.empty(out, np.float32),
        "offsets": np.empty(out, np.float32),
        "lengths": np.empty((2, out), np.float32),
    }[part]
    assert made is not None
    for first in range(0, out, _ROWS):
        rows = np.asarray(matrix[first : first + _ROWS], np.float32) / columns
        scale = np.maximum(rows.max(1), -rows.min(1)) / np.float32(_MOST)
        scale[scale == 0] = 1
        where = slice(first, first + len(rows))
        if part == "scales":
            made[where] = scale
            continue
        steps = np.rint(rows / scale[:, None])
        if part == "values":
            made[:, where] = steps.T
        elif part == "offsets":
            made[where] = steps.sum(1) * scale * OFFSET
        else:
            kept = steps * scale[:, None]
            made[0, where], made[1, where] = (np.linalg.norm(x, axis=1) for x in (rows - kept, kept))
    return made


def _columns(matrix: Array) -> Array:
    """The largest of each column, 1 in the middle."""
    largest = np.maximum(matrix.max(0), -matrix.min(0)).astype(np.float32)
    positive = largest[largest > 0]
    if not len(positive):
        return np.ones_like(largest)
    return np.asarray(np.where(largest > 0, largest / np.median(positive), 1), np.float32)
