"""Checkpoints: stored tensors by name, mapped from safetensors files and not copied.

Files are mapped privately (copy on write), so that arrays are writable, as frameworks demand of memory that
they adopt, while the file stays as it is; pages are read when they are touched.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import WeightsError
from nest.ir.parammap import TensorSpec
from nest.weights._header import Extent, read_header

__all__ = ["Checkpoint", "TensorView", "numpy_dtype", "open_checkpoint"]

_NUMPY = {
    "bool": "?", "u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "f16": "<f2", "u32": "<u4", "i32": "<i4",
    "f32": "<f4", "u64": "<u8", "i64": "<i8", "f64": "<f8",
}  # fmt: skip
_ML_DTYPES = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}


def numpy_dtype(name: str) -> np.dtype[Any] | None:
    """The numpy dtype of a stored dtype; None for those that need `ml_dtypes` where that is not installed."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    try:
        import ml_dtypes
    except ImportError:
        return None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return found


class MappedFile(mmap.mmap):
    """A mapped file that knows which file it is, for runtimes that map it themselves."""

    path: Path


class TensorView:
    """One stored tensor. `array()` maps it; nothing is read before."""

    __slots__ = ("_buffer", "_extent", "_path", "name")

    def __init__(self, name: str, extent: Extent, buffer: mmap.mmap, path: Path) -> None:
        self.name = name
        self._extent = extent
        self._buffer = buffer
        self._path = path

    @property
    def spec(self) -> TensorSpec:
        """Shape and stored dtype."""
        return self._extent.spec

    @property
    def shape(self) -> tuple[int, ...]:
        return self._extent.spec.shape

    @property
    def dtype(self) -> str:
        """The stored dtype, such as `"f32"`."""
        return self._extent.spec.dtype

    def array(self) -> npt.NDArray[Any]:
        """The tensor as a view of the mapped file; writing to it changes this process's copy only.

        bf16 is a view where `ml_dtypes` is installed, else an f32 copy (exact).

        Raises:
            WeightsError: an 8-bit float, and `ml_dtypes` is not installed.
        """
        dtype = numpy_dtype(self.dtype)
        if dtype is None and self.dtype == "bf16":
            halves = self._view(np.dtype("<u2"))
            return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
        if dtype is None:
            raise WeightsError(
                f"{self._path}: tensor '{self.name}' is {self.dtype}, which needs the package 'ml_dtypes': "
                f"pip install ml_dtypes"
            )
        return self._view(dtype)

    def _view(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        count = self._extent.size // dtype.itemsize
        flat: npt.NDArray[Any] = np.frombuffer(self._buffer, dtype, count, self._extent.offset)
        # Frameworks refuse or misread unaligned memory, which the format permits.
        return (flat if flat.flags.aligned else flat.copy()).reshape(self.shape)

    def __repr__(self) -> str:
        return f"TensorView({self.name!r}, {self.spec})"


class Checkpoint(Mapping[str, TensorView]):
    """The tensors of one or more safetensors files, by name."""

    def __init__(self, tensors: Mapping[str, TensorView], paths: Sequence[Path]) -> None:
        self._tensors = dict(tensors)
        self.paths = tuple(paths)

    def __getitem__(self, name: str) -> TensorView:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def specs(self) -> dict[str, TensorSpec]:
        """Shape and dtype of each tensor."""
        return {name: tensor.spec for name, tensor in self._tensors.items()}

    def __repr__(self) -> str:
        return f"Checkpoint({', '.join(map(str, self.paths))}: {len(self)} tensors)"


def open_checkpoint(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Checkpoint:
    """Map one safetensors file, or the shards of a checkpoint.

    Raises:
        WeightsError: a file is missing, truncated, damaged, not safetensors, or repeats another's tensor.
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else paths
    files = [Path(path) for path in listed]
    tensors: dict[str, TensorView] = {}
    for file in files:
        for name, view in _map_file(file):
            if name in tensors:
                raise WeightsError(f"{file} repeats the tensor '{name}' of another file of the checkpoint.")
            tensors[name] = view
    return Checkpoint(tensors, files)


def _map_file(path: Path) -> list[tuple[str, TensorView]]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            extents = read_header(file, path, size)
            buffer = MappedFile(file.fileno(), size, access=mmap.ACCESS_COPY)
            buffer.path = path
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = getattr(error, "strerror", None) or error
        raise WeightsError(
            f"The weights {str(path).replace(chr(0), '?')} cannot be read: {reason}."
        ) from error
    return [(name, TensorView(name, extent, buffer, path)) for name, extent in extents.items()]
