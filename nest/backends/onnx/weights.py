"""Where the runtime reads a model's weights: files that it maps, so that all graphs share one copy."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from nest.backends.onnx.dtypes import numpy_dtype
from nest.backends.onnx.made_weights import Extent, MadeWeights, key_of
from nest.backends.onnx.quantized import quantized
from nest.backends.packing import Packer
from nest.errors import WeightsError
from nest.ir.inventory import parameters
from nest.ir.parammap import Expr, ParamMap, Source
from nest.ir.program import Program
from nest.ir.types import ParamSpec

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["WeightFiles"]

Array = npt.NDArray[Any]

_PREFIX = "nest-onnx-"
_ALIGNMENT = 64
_CHUNK = 1 << 22  # elements converted at a time


@dataclass(frozen=True)
class _Place:
    file: Path
    offset: int
    length: int


class WeightFiles:
    """Parameters as extents of files.

    An array that is an unchanged piece of a mapped checkpoint stays where it is. The others (cast, concatenated,
    random) are written once, to a temporary file that lives as long as this object.

    Args:
        specs: every parameter, by path.
        params: the arrays of those that are not stored yet, in any float width.
        beside: other files, and which of theirs each of the other parameters is.
        places: where those are that lie in a file which lasts.

    Raises:
        WeightsError: the temporary file cannot be written.
    """

    def __init__(
        self,
        specs: Mapping[str, ParamSpec],
        params: Mapping[str, Array],
        beside: tuple[WeightFiles, Mapping[str, str]] | None = None,
        places: Mapping[str, _Place] | None = None,
    ) -> None:
        self._specs = dict(specs)
        # Held, since its temporary file lives as long as it does.
        self._beside = beside
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.root = Path(self._folder.anchor)
        """What locations of external data are relative to: with it, a graph refers to files wherever they are."""
        try:
            self._places = self._stored(params, places or {})
        except OSError as error:
            self._finalizer()
            raise WeightsError(
                f"The weights cannot be written to {self._folder}: {error.strerror or error}. Make room there, or set "
                f"TMPDIR to a folder with room for them."
            ) from error

    def _stored(self, params: Mapping[str, Array], known: Mapping[str, _Place]) -> dict[str, _Place]:
        places = dict(known)
        written: dict[tuple[int, tuple[int, ...], str], _Place] = {}
        if self._beside is not None:
            other, names = self._beside
            places |= {path: other._places[name] for path, name in names.items()}
        spill = self._folder / "weights.bin"
        with spill.open("wb") as file:
            for path in (p for p in self._specs if p not in places):
                spec, array, dtype = self._specs[path], params[path], numpy_dtype(self._specs[path].dtype)
                place = _mapped(array, dtype)
                if place is None or place.file.anchor != self._folder.anchor:
                    # Two paths over one array are stored once.
                    key = (array.ctypes.data, array.strides, spec.dtype)
                    place = written.get(key) or _Place(spill, *_append(file, array, dtype))
                    written[key] = place
                places[path] = place
        return places

    def packed(self, program: Program, params: ParamMap) -> WeightFiles:
        """The parameters of a plan's program: those that are as they were stay where they are.

        The others are kept in nest's cache where they are made of files that last.

        Raises:
            WeightsError: the temporary file of the others cannot be written.
        """
        kept = {path: e.name for path, e in params.expressions.items() if isinstance(e, Source)}
        made = ParamMap({path: e for path, e in params.expressions.items() if path not in kept})
        specs = parameters(program)
        found = self._kept(specs, made)
        if found is None:
            return WeightFiles(specs, _PACKER.packed(made, self._array), (self, kept))
        return WeightFiles(specs, {}, (self, kept), found)

    def _kept(self, specs: Mapping[str, ParamSpec], made: ParamMap) -> dict[str, _Place] | None:
        """Where what a plan makes lies in nest's cache, made now if need be; None where it cannot be kept."""
        cache, sources = (
            MadeWeights(),
            sorted({name for e in made.expressions.values() for name in _sources(e)}),
        )
        places = [self._places[name] for name in sources]
        lasting = all(place.file.parent != self._folder for place in places)
        if not made.expressions or not lasting or cache.folder.absolute().anchor != self._folder.anchor:
            return None
        recipes = {
            path: f"{expression!r} {specs[path].dtype}" for path, expression in made.expressions.items()
        }
        of = [
            (p.file, p.offset, p.length, f"{n} {self._specs[n]}")
            for n, p in zip(sources, places, strict=True)
        ]
        if (key := key_of(recipes, of)) is None:
            return None

        def write(file: BinaryIO) -> dict[str, Extent]:
            arrays = _PACKER.packed(made, self._array)
            return {
                path: _append(file, array, numpy_dtype(specs[path].dtype)) for path, array in arrays.items()
            }

        found = cache.get(key) or cache.put(key, write)
        if found is None or found[1].keys() != made.expressions.keys():
            return None
        return {path: _Place(found[0], *extent) for path, extent in found[1].items()}

    def _array(self, path: str) -> Array:
        """A parameter as it lies in its file."""
        spec, place = self._specs[path], self._places[path]
        return np.memmap(place.file, numpy_dtype(spec.dtype), "r", place.offset, spec.shape)

    def tensor(self, path: str) -> ir.ExternalTensor:
        """A parameter as an initializer that refers to its file."""
        import onnx_ir as ir

        from nest.backends.onnx.element_types import ONNX

        spec, place = self._specs[path], self._places[path]
        return ir.ExternalTensor(
            place.file.relative_to(self.root).as_posix(),
            place.offset,
            place.length,
            ONNX[spec.dtype],
            shape=ir.Shape(spec.shape),
            name=path,
            base_dir=self.root,
        )

    def layout(self) -> str:
        """Where each parameter lies; temporary folders, which have other names each time, by their stand-ins."""
        lines = [
            f"{path} {self._specs[path].dtype} {place.file} {place.offset} {place.length}"
            for path, place in sorted(self._places.items())
        ]
        return self.lasting("\n".join(lines).encode()).decode()

    def lasting(self, text: bytes) -> bytes:
        """A graph, or other text, with stand-ins for the names of temporary folders, which are as long."""
        for name, other in self._stand_ins():
            text = text.replace(name, other)
        return text

    def present(self, text: bytes) -> bytes:
        """What `lasting` gave, with the names of this object's temporary folders."""
        for name, other in self._stand_ins():
            text = text.replace(other, name)
        return text

    def _stand_ins(self, depth: int = 0) -> list[tuple[bytes, bytes]]:
        own = self._folder.name.encode()
        stand_in = _PREFIX.encode() + str(depth).encode() * (len(own) - len(_PREFIX))
        return [(own, stand_in), *([] if self._beside is None else self._beside[0]._stand_ins(depth + 1))]


_PACKER = Packer(
    concat=lambda parts, axis: np.concatenate(list(parts), axis),
    transpose=np.transpose,
    zeros=lambda shape, dtype: np.zeros(shape, numpy_dtype(dtype)),
    quantized=quantized,
)


def _sources(expression: Expr) -> Iterator[str]:
    """The parameters that one is made of."""
    if isinstance(expression, Source):
        yield expression.name
    for part in expression.parts:
        yield from _sources(part)


def _append(file: BinaryIO, array: Array, dtype: np.dtype[Any]) -> Extent:
    """Write an array at the end of a file, in another type where it has one."""
    file.write(b"\0" * (-file.tell() % _ALIGNMENT))
    start = file.tell()
    flat = array.reshape(-1)
    for first in range(0, flat.size, _CHUNK):
        file.write(np.ascontiguousarray(flat[first : first + _CHUNK], dtype).view(np.uint8).data)
    return start, file.tell() - start


def _mapped(array: Array, dtype: np.dtype[Any]) -> _Place | None:
    """The file and offset of an array that is a contiguous piece of a mapped file, in its own type."""
    if array.dtype != dtype or not array.flags.c_contiguous or array.size == 0:
        return None
    owner: Any = array
    while owner is not None and not hasattr(owner, "path"):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    if owner is None:
        return None
    start = np.frombuffer(owner, np.uint8).ctypes.data
    length = math.prod(array.shape) * dtype.itemsize
    return _Place(Path(owner.path).resolve(), array.ctypes.data - start, length)
