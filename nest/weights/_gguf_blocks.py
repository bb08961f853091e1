"""Blocks of GGUF tensors: how many values each holds, how many bytes it takes, and what they stand for.

Q4_0: f16 d, 32 four-bit q; value d (q - 8). Q4_1: f16 d, f16 m, 32 four-bit q; value d q + m. Q8_0: f16 d, 32 i8 q;
value d q. Of the bytes that hold four-bit numbers, the low halves come first, then the high ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BLOCKS", "BlockType"]

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class BlockType:
    """One storage type. `decode` takes blocks as rows of bytes, and gives a row of f32 for each."""

    name: str
    values: int
    size: int
    decode: Callable[[Bytes], Floats]


def _f32(blocks: Bytes) -> Floats:
    return _as(blocks, "<f4").astype(np.float32)


def _f16(blocks: Bytes) -> Floats:
    return _as(blocks, "<f2").astype(np.float32)


def _q4_0(blocks: Bytes) -> Floats:
    values = _halves(blocks[:, 2:])
    values -= 8
    values *= _f16(blocks[:, :2])
    return values


def _q4_1(blocks: Bytes) -> Floats:
    values = _halves(blocks[:, 4:])
    values *= _f16(blocks[:, :2])
    values += _f16(blocks[:, 2:4])
    return values


def _q8_0(blocks: Bytes) -> Floats:
    values = _as(blocks[:, 2:], "i1").astype(np.float32)
    values *= _f16(blocks[:, :2])
    return values


def _halves(packed: Bytes) -> Floats:
    """The low halves of the bytes, then the high halves."""
    values = np.empty((len(packed), 2 * packed.shape[1]), np.float32)
    values[:, : packed.shape[1]] = packed & 0x0F
    values[:, packed.shape[1] :] = packed >> 4
    return values


def _as(blocks: Bytes, dtype: str) -> npt.NDArray[Any]:
    return np.ascontiguousarray(blocks).view(dtype)


BLOCKS: Mapping[int, BlockType] = {
    0: BlockType("F32", 1, 4, _f32),
    1: BlockType("F16", 1, 2, _f16),
    2: BlockType("Q4_0", 32, 18, _q4_0),
    3: BlockType("Q4_1", 32, 20, _q4_1),
    8: BlockType("Q8_0", 32, 34, _q8_0),
}
"""By the format's number."""
