"""Read a CTranslate2 model file, bounded against files that are damaged or hostile.

Form, version 6, little-endian: u32 version; str specification; u32 revision; u32 count of variables, each:
str name, u8 rank, u32 dims, u8 dtype, u32 bytes, data; u32 count of aliases, each: str alias, str target. A
str is a u16 length that counts its trailing NUL, then the bytes. See https://github.com/OpenNMT/CTranslate2.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from pathlib import Path

from nest.errors import WeightsError
from nest.ir.parammap import STORED_DTYPES, TensorSpec
from nest.weights._header import Extent
from nest.weights.checkpoint import TensorView

__all__ = ["CT2File", "read_ct2_file"]

_VERSION = 6
_DTYPES = ("f32", "i8", "i16", "i32", "f16", "bf16")
_MAX_VARIABLES = 100_000
_MAX_RANK = 8


@dataclass(frozen=True)
class CT2File:
    """The variables of a model file, mapped, and its aliases (alias to variable)."""

    specification: str
    revision: int
    variables: dict[str, TensorView]
    aliases: dict[str, str]


def read_ct2_file(path: Path) -> CT2File:
    """Map the variables of the model file at `path`.

    Raises:
        WeightsError: the file cannot be read, is truncated, or is not of this form; names the byte offset.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            buffer = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) if size else None
    except OSError as error:
        raise WeightsError(f"The weights {path} cannot be read: {error.strerror or error}.") from error
    if buffer is None:
        raise WeightsError(f"{path} is not a CTranslate2 model file: it is empty.")
    return _Reader(path, buffer, size).read()


class _Reader:
    def __init__(self, path: Path, buffer: mmap.mmap, size: int) -> None:
        self._path = path
        self._buffer = buffer
        self._size = size
        self._at = 0

    def read(self) -> CT2File:
        version = self._number(4, "the version")
        if version != _VERSION:
            raise self._error(f"its format version is {version}; nest reads version {_VERSION}", 0)
        specification = self._text("the specification")
        revision = self._number(4, "the revision")
        variables = dict(self._variable(index) for index in range(self._count("variables")))
        aliases = {}
        for index in range(self._count("aliases")):
            alias = self._text(f"alias {index}")
            aliases[alias] = self._text(f"the target of alias '{alias}'")
            if aliases[alias] not in variables:
                raise self._error(
                    f"alias '{alias}' names the variable '{aliases[alias]}', which is not there"
                )
        if self._at != self._size:
            raise self._error(f"{self._size - self._at} bytes follow its last alias")
        return CT2File(specification, revision, variables, aliases)

    def _variable(self, index: int) -> tuple[str, TensorView]:
        start = self._at
        name = self._text(f"the name of variable {index}")
        rank = self._number(1, f"the rank of '{name}'")
        if rank > _MAX_RANK:
            raise self._error(f"variable '{name}' has {rank} axes (at most {_MAX_RANK} are accepted)", start)
        shape = tuple(self._number(4, f"the shape of '{name}'") for _ in range(rank))
        kind = self._number(1, f"the dtype of '{name}'")
        if kind >= len(_DTYPES):
            raise self._error(f"variable '{name}' has the dtype number {kind}; nest knows 0 to 5", start)
        dtype = _DTYPES[kind]
        stated = self._number(4, f"the size of '{name}'")
        needed = math.prod(shape) * STORED_DTYPES[dtype]
        if stated != needed:
            raise self._error(
                f"variable '{name}', {dtype}{list(shape)}, takes {needed} bytes; it states {stated}", start
            )
        offset = self._skip(needed, f"the data of '{name}'")
        return name, TensorView(name, Extent(TensorSpec(shape, dtype), offset), self._buffer, self._path)

    def _skip(self, count: int, what: str) -> int:
        """Move past `count` bytes that must be there; returns where they start."""
        start, left = self._at, self._size - self._at
        if count > left:
            raise self._error(f"it is truncated: {what} takes {count} bytes; {left} are left")
        self._at += count
        return start

    def _number(self, size: int, what: str) -> int:
        start = self._skip(size, what)
        return int.from_bytes(self._buffer[start : start + size], "little")

    def _count(self, what: str) -> int:
        start = self._at
        count = self._number(4, f"the number of {what}")
        if count > _MAX_VARIABLES:
            raise self._error(f"it states {count} {what} (at most {_MAX_VARIABLES} are accepted)", start)
        return count

    def _text(self, what: str) -> str:
        length = self._number(2, what)
        start = self._skip(length, what)
        raw = self._buffer[start : start + length]
        if not raw.endswith(b"\0"):
            raise self._error(f"{what} does not end in a NUL", start)
        try:
            return raw[:-1].decode("utf-8")
        except UnicodeDecodeError:
            raise self._error(f"{what} is not UTF-8 text", start) from None

    def _error(self, fault: str, offset: int | None = None) -> WeightsError:
        at = self._at if offset is None else offset
        return WeightsError(
            f"{self._path} is not a CTranslate2 model file that nest reads: at byte {at}, {fault}."
        )
