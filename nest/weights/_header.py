"""The header of a safetensors file, checked against the file before any tensor is looked at.

Form (little-endian): u64 length of the header; the header, a JSON object from tensor name to dtype, shape and
byte range; the data. See https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nest.errors import WeightsError
from nest.ir.parammap import STORED_DTYPES, TensorSpec

__all__ = ["SAFETENSORS_DTYPES", "Extent", "read_header"]

MAX_HEADER_BYTES = 100_000_000
_MOST_AXES = 64
SAFETENSORS_DTYPES = {name: name.upper() for name in STORED_DTYPES}
"""The format's name of each stored dtype."""
_STORED = {theirs: ours for ours, theirs in SAFETENSORS_DTYPES.items()}


@dataclass(frozen=True)
class Extent:
    """Where one tensor lies: its shape and dtype, and the offset of its first byte in the file."""

    spec: TensorSpec
    offset: int

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return math.prod(self.spec.shape) * STORED_DTYPES[self.spec.dtype]


def read_header(file: BinaryIO, path: Path, size: int) -> dict[str, Extent]:
    """The tensors of an open safetensors file of `size` bytes.

    Raises:
        WeightsError: the file is truncated, longer than its header says, or its header is not valid.
    """
    prefix = file.read(8)
    if len(prefix) < 8:
        raise WeightsError(
            f"{path} is not a safetensors file: expected 8 bytes of header length; it has {len(prefix)}."
        )
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER_BYTES:
        raise WeightsError(
            f"{path} is not a safetensors file: its first 8 bytes give a header of {length} bytes "
            f"(at most {MAX_HEADER_BYTES} are accepted)."
        )
    if 8 + length > size:
        raise _truncated(path, 8 + length, size)
    header = _parse(file.read(length), path)
    extents = {name: _extent(name, entry, 8 + length, path) for name, entry in header.items()}
    _check_layout(extents, 8 + length, path, size)
    return extents


def _truncated(path: Path, expected: int, found: int) -> WeightsError:
    return WeightsError(
        f"{path} is truncated: its header calls for {expected} bytes; the file has {found}. "
        f"Delete it and fetch it again."
    )


def _parse(raw: bytes, path: Path) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) != len(pairs):
            raise ValueError("a name stands twice")
        return found

    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)  # of bytes, it would guess
    except (ValueError, RecursionError) as error:
        raise WeightsError(
            f"{path} is not a safetensors file: its header is not valid JSON: {error}."
        ) from error
    if not isinstance(header, dict):
        raise WeightsError(f"{path} is not a safetensors file: its header is not a JSON object.")
    header.pop("__metadata__", None)
    return header


def _extent(name: str, entry: Any, data_start: int, path: Path) -> Extent:
    try:
        dtype, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, start, stop]
    except (KeyError, TypeError, ValueError):
        raise WeightsError(
            f"{path}: the header of tensor '{name}' lacks dtype, shape or data_offsets: {entry!r:.100}"
        ) from None
    if any(type(number) is not int or number < 0 for number in numbers):
        raise WeightsError(
            f"{path}: tensor '{name}' has a shape or offsets that are no counts: {entry!r:.100}"
        )
    if len(shape) > _MOST_AXES or math.prod(size or 1 for size in shape) >= 1 << 63:
        raise WeightsError(f"{path}: tensor '{name}' has a shape that no array has: {shape!r:.100}")
    if not isinstance(dtype, str) or dtype not in _STORED:
        raise WeightsError(
            f"{path}: tensor '{name}' has the dtype {dtype!r:.100}; nest reads {', '.join(_STORED)}."
        )
    extent = Extent(TensorSpec(tuple(shape), _STORED[dtype]), data_start + start)
    if stop - start != extent.size:
        raise WeightsError(
            f"{path}: tensor '{name}', {extent.spec}, takes {extent.size} bytes; its offsets: {stop - start}."
        )
    return extent


def _check_layout(extents: dict[str, Extent], data_start: int, path: Path, size: int) -> None:
    """Tensors fill the data without gaps or overlaps, to the file's last byte."""
    end = data_start
    for name, extent in sorted(extents.items(), key=lambda item: (item[1].offset, item[1].size)):
        if extent.offset != end:
            kind = "overlaps the tensor before it" if extent.offset < end else "leaves a gap before it"
            raise WeightsError(
                f"{path}: tensor '{name}' {kind}: expected at byte {end}; found at {extent.offset}."
            )
        end += extent.size
    if end > size:
        raise _truncated(path, end, size)
    if end < size:
        raise WeightsError(
            f"{path} has {size - end} bytes after its last tensor: expected {end}; found {size}."
        )
