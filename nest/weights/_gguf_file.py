"""Read a GGUF file, bounded against files that are damaged or hostile.

Form, versions 2 and 3, little-endian: "GGUF"; u32 version; u64 count of tensors; u64 count of settings, each: str
key, u32 type, value; the tensors, each: str name, u32 rank, u64 dims (innermost first), u32 type, u64 offset; then,
aligned, the data. A str is a u64 length and the bytes. See https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import WeightsError
from nest.weights._gguf_blocks import BLOCKS, BlockType

__all__ = ["GGUFFile", "GGUFTensor", "read_gguf_file"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_COUNT = 100_000
_MAX_RANK = 4
_MAX_NAME = 1024
_MAX_TEXT = 1 << 20
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_TEXT, _ARRAY = 8, 9


@dataclass(frozen=True)
class GGUFTensor:
    """One tensor: its shape, outermost first, the type of its blocks, and where they lie in the file."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    offset: int
    buffer: mmap.mmap

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return math.prod(self.shape) // self.type.values * self.type.size

    def array(self) -> npt.NDArray[np.float32]:
        """The values as f32: a copy, also of those stored so. Damaged scales give values that are not finite."""
        count = math.prod(self.shape) // self.type.values
        raw = np.frombuffer(self.buffer, np.uint8, count * self.type.size, self.offset)
        with np.errstate(all="ignore"):
            return self.type.decode(raw.reshape(count, self.type.size)).reshape(self.shape)


@dataclass(frozen=True)
class GGUFFile:
    """The single settings of a file, those arrays that were asked for, and its tensors."""

    settings: dict[str, int | float | bool | str]
    tensors: dict[str, GGUFTensor]
    arrays: dict[str, list[Any]]


def read_gguf_file(path: Path, arrays: Collection[str] = ()) -> GGUFFile:
    """Map the tensors of the file at `path`.

    Args:
        arrays: settings that are lists, such as vocabularies, which are passed over unless they are named here.

    Raises:
        WeightsError: the file cannot be read, is truncated, or is not of this form; names the byte offset.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            buffer = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else None
    except OSError as error:
        raise WeightsError(f"The weights {path} cannot be read: {error.strerror or error}.") from error
    if buffer is None:
        raise WeightsError(f"{path} is not a GGUF file: it is empty.")
    return _Reader(path, buffer, size, arrays).read()


class _Reader:
    def __init__(self, path: Path, buffer: mmap.mmap, size: int, wanted: Collection[str]) -> None:
        self._path = path
        self._buffer = buffer
        self._size = size
        self._wanted = wanted
        self._at = 0

    def read(self) -> GGUFFile:
        if self._bytes(4, "its first four bytes") != _MAGIC:
            raise self._error("it does not start with 'GGUF'", 0)
        if (version := self._number("<I", "the version")) not in _VERSIONS:
            raise self._error(f"its version is {version}; nest reads {' and '.join(map(str, _VERSIONS))}", 4)
        tensor_count = self._count("tensors")
        setting_count = self._count("settings")
        settings = self._unique((self._setting() for _ in range(setting_count)), "setting")
        tensors = [self._tensor(index) for index in range(tensor_count)]
        alignment = settings.get("general.alignment", 32)
        if type(alignment) is not int or not 0 < alignment <= 1 << 16:
            raise self._error(f"'general.alignment' is {alignment!r:.80}")
        start = -(-self._at // alignment) * alignment
        placed = self._placed(tensors, start)
        found = {name: value for name, value in settings.items() if value is not None}
        arrays = {name: found.pop(name) for name in self._wanted if isinstance(found.get(name), list)}
        return GGUFFile(found, self._unique(((tensor.name, tensor) for tensor in placed), "tensor"), arrays)

    def _unique(self, pairs: Iterator[tuple[str, Any]], what: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise self._error(f"the {what} '{name}' stands twice")
            found[name] = value
        return found

    def _setting(self) -> tuple[str, Any]:
        key = self._text("a setting's name", _MAX_NAME)
        return key, self._value(self._number("<I", f"the type of '{key}'"), key)

    def _value(self, kind: int, key: str) -> Any:
        if kind in _SCALARS:
            return self._number(_SCALARS[kind], f"'{key}'")
        if kind == _TEXT:
            return self._text(f"'{key}'", _MAX_TEXT)
        if kind == _ARRAY:
            return self._array(key) if key in self._wanted else self._pass_array(key)
        raise self._error(f"'{key}' has the type {kind}, which is none of the format's")

    def _array(self, key: str) -> list[Any]:
        kind = self._number("<I", f"the type of '{key}'")
        count = self._number("<Q", f"the length of '{key}'")
        if kind not in _SCALARS and kind != _TEXT:
            raise self._error(
                f"'{key}' is an array of the type {kind}; nest reads arrays of numbers and texts"
            )
        # Each element takes bytes of the file, so that this ends with it.
        if kind == _TEXT:
            return [self._text(f"a text of '{key}'", _MAX_TEXT) for _ in range(count)]
        return [self._number(_SCALARS[kind], f"a number of '{key}'") for _ in range(count)]

    def _pass_array(self, key: str) -> None:
        kind = self._number("<I", f"the type of '{key}'")
        count = self._number("<Q", f"the length of '{key}'")
        if kind in _SCALARS:
            self._skip(count * struct.calcsize(_SCALARS[kind]), f"the array '{key}'")
        elif kind == _TEXT:
            for _ in range(count):  # each takes bytes of the file, so that this ends with it
                self._skip(self._number("<Q", f"a text of '{key}'"), f"a text of '{key}'")
        else:
            raise self._error(
                f"'{key}' is an array of the type {kind}; nest reads arrays of numbers and texts"
            )

    def _tensor(self, index: int) -> tuple[str, tuple[int, ...], BlockType, int]:
        name = self._text(f"the name of tensor {index}", _MAX_NAME)
        rank = self._number("<I", f"the rank of '{name}'")
        if rank > _MAX_RANK:
            raise self._error(f"tensor '{name}' has {rank} axes (at most {_MAX_RANK} are accepted)")
        shape = tuple(self._number("<Q", f"the shape of '{name}'") for _ in range(rank))[::-1]
        kind = self._number("<I", f"the type of '{name}'")
        if kind not in BLOCKS:
            known = ", ".join(block.name for block in BLOCKS.values())
            raise self._error(f"tensor '{name}' has the type number {kind}; nest reads {known}")
        block = BLOCKS[kind]
        if (shape[-1] if shape else 1) % block.values:
            raise self._error(
                f"tensor '{name}', {block.name}{list(shape)}, has rows that are no whole blocks of {block.values}"
            )
        return name, shape, block, self._number("<Q", f"the offset of '{name}'")

    def _placed(
        self, tensors: list[tuple[str, tuple[int, ...], BlockType, int]], start: int
    ) -> list[GGUFTensor]:
        """Each within the file and apart from the others, so that together they are no larger than it."""
        placed = [
            GGUFTensor(name, shape, block, start + at, self._buffer) for name, shape, block, at in tensors
        ]
        end = start
        for tensor in sorted(placed, key=lambda tensor: (tensor.offset, tensor.size)):
            if tensor.offset < end:
                raise self._error(f"tensor '{tensor.name}' overlaps the one before it", tensor.offset)
            end = tensor.offset + tensor.size
            if end > self._size:
                raise self._error(
                    f"it is truncated: tensor '{tensor.name}' ends at byte {end}; the file has {self._size}",
                    tensor.offset,
                )
        return placed

    def _skip(self, count: int, what: str) -> int:
        """Move past `count` bytes that must be there; returns where they start."""
        start, left = self._at, self._size - self._at
        if count > left:
            raise self._error(f"it is truncated: {what} takes {count} bytes; {left} are left")
        self._at += count
        return start

    def _bytes(self, count: int, what: str) -> bytes:
        start = self._skip(count, what)
        return self._buffer[start : start + count]

    def _number(self, form: str, what: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form), what))[0]

    def _count(self, what: str) -> int:
        start = self._at
        count = self._number("<Q", f"the number of {what}")
        if count > _MAX_COUNT:
            raise self._error(f"it states {count} {what} (at most {_MAX_COUNT} are accepted)", start)
        return int(count)

    def _text(self, what: str, longest: int) -> str:
        start = self._at
        length = self._number("<Q", what)
        if length > longest:
            raise self._error(f"{what} has {length} bytes (at most {longest} are accepted)", start)
        try:
            return self._bytes(length, what).decode("utf-8")
        except UnicodeDecodeError:
            raise self._error(f"{what} is not UTF-8 text", start) from None

    def _error(self, fault: str, offset: int | None = None) -> WeightsError:
        at = self._at if offset is None else offset
        return WeightsError(f"{self._path} is not a GGUF file that nest reads: at byte {at}, {fault}.")
