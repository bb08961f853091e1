"""Weights in 8 or 4 bits, made of a checkpoint's at load and kept in nest's cache: see `nest.ir.passes.quantize`."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import WeightsError
from nest.ir.parammap import TensorSpec
from nest.ir.passes.quantize import GROUP, QuantizedMatrix, QuantizedProgram
from nest.weights._files import forget_oldest
from nest.weights.cache import cache_root
from nest.weights.checkpoint import open_checkpoint
from nest.weights.writer import write_safetensors

__all__ = [
    "PartQuantization",
    "quantization_cache",
    "quantized_files",
    "quantized_matrix",
    "quantized_parameters",
]

Array = npt.NDArray[Any]

_FORMAT = "1"
"""Of the files in the cache; another one where the same weights would be quantized otherwise."""
_KEPT_BYTES = 16 << 30
_IN_USE = 24 * 60 * 60.0
"""Seconds in which a file may be in use by a process that found it."""
_DTYPES = {"int8": "i8", "uint8": "u8", "float32": "f32"}


@dataclass(frozen=True)
class PartQuantization:
    """What became of the matrices of a part.

    Attributes:
        part: of the definition.
        scheme: `"int8"` or `"int4"`.
        matrices: how many.
        bytes_before: their size in the model's element type.
        bytes_after: their size now, scales included.
        largest_error: of a matrix, the length of what rounding changed over the length of the matrix; the largest.
        mean_error: the mean of these.
    """

    part: str
    scheme: str
    matrices: int
    bytes_before: int
    bytes_after: int
    largest_error: float
    mean_error: float

    def __str__(self) -> str:
        sizes = f"{self.bytes_before / 1e6:.1f} to {self.bytes_after / 1e6:.1f} MB"
        error = f"{self.mean_error:.2%} in the mean, {self.largest_error:.2%} at most"
        return f"{self.part}: {self.matrices} matrices in {self.scheme}, {sizes}, changed by {error}"


def quantization_cache() -> Path:
    """The folder of quantized weights."""
    return cache_root() / "quantized"


def quantized_parameters(
    made: QuantizedProgram, params: Mapping[str, Array], bytes_each: int, identity: str | None
) -> tuple[dict[str, Array], tuple[PartQuantization, ...]]:
    """The parameters of a quantized program, and what became of each part.

    Args:
        params: the definition's, by path.
        bytes_each: the size of an element as the model would have it.
        identity: names the weights, so that what is made of them is kept; None where nothing does.

    Raises:
        WeightsError: a weight is no finite number.
    """
    parts = _kept(made, params, identity)
    own = {path: params[source] for path, source in made.kept.items()}
    for stem in made.matrices:
        own |= {f"{stem}_{part}": parts[f"{stem}_{part}"] for part in ("values", "scales")}
    return own, tuple(_reports(made.matrices, params, parts, bytes_each))


def quantized_matrix(matrix: Array, scheme: str) -> dict[str, Array]:
    """The parts of a matrix float [Out, In]: `values`, `scales`, and `error`, f32 [1], relative to its length."""
    weight = np.asarray(matrix, np.float32)
    values, scales, kept = (_eight if scheme == "int8" else _four)(weight)
    length = float(np.linalg.norm(weight))
    error = float(np.linalg.norm(weight - kept)) / length if length else 0.0
    return {"values": values, "scales": scales, "error": np.array([error], np.float32)}


def _eight(weight: Array) -> tuple[Array, Array, Array]:
    scales = _whole(np.abs(weight).max(1) / np.float32(127))
    steps = np.rint(weight / scales[:, None])
    return np.ascontiguousarray(steps.T.astype(np.int8)), scales, steps * scales[:, None]


def _four(weight: Array) -> tuple[Array, Array, Array]:
    """What is largest in a group, of either sign, is -8 steps."""
    groups = weight.reshape(len(weight), -1, GROUP)
    place = np.abs(groups).argmax(2, keepdims=True)
    scales = _whole(np.take_along_axis(groups, place, 2)[..., 0] / np.float32(-8))
    steps = np.clip(np.rint(groups / scales[..., None]), -8, 7)
    nibbles = (steps + 8).astype(np.uint8)
    packed = nibbles[..., ::2] | nibbles[..., 1::2] << 4
    return packed, scales, (steps * scales[..., None]).reshape(weight.shape)


def _whole(scales: Array) -> Array:
    """Scales f32, 1 for what is all zeros or so small that no step can be told."""
    return np.asarray(np.where(np.abs(scales) > np.finfo(np.float32).tiny, scales, 1), np.float32)


def _kept(made: QuantizedProgram, params: Mapping[str, Array], identity: str | None) -> Mapping[str, Array]:
    """The parts of every matrix, from the cache where they are there; put there otherwise."""
    path = None if identity is None else quantization_cache() / f"{_key(made.matrices, identity)}.safetensors"
    if path is not None and (found := _read(path, made.matrices)) is not None:
        return found
    parts: dict[str, Array] = {}
    for stem, matrix in made.matrices.items():
        weight = params[matrix.source]
        if not np.isfinite(np.asarray(weight, np.float32)).all():
            raise WeightsError(
                f"'{matrix.source}' has weights that are no finite numbers, and cannot be quantized: leave quantize= "
                f"out, or the part '{matrix.part}' as it is with quantize={{...: None}}."
            )
        parts |= {f"{stem}_{part}": a for part, a in quantized_matrix(weight, matrix.scheme).items()}
    if path is not None:
        specs = {name: TensorSpec(a.shape, _DTYPES[a.dtype.name]) for name, a in parts.items()}
        # A cache that cannot be written costs time, and no more.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_safetensors(path, specs, parts.__getitem__)
            forget_oldest(quantized_files(), _KEPT_BYTES, in_use=_IN_USE)
            return _read(path, made.matrices) or parts
    return parts


def _key(matrices: Mapping[str, QuantizedMatrix], identity: str) -> str:
    lines = [_FORMAT, identity, *(f"{s} {m.source} {m.scheme}" for s, m in sorted(matrices.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _read(path: Path, matrices: Iterable[str]) -> Mapping[str, Array] | None:
    try:
        checkpoint = open_checkpoint([path])
    except (WeightsError, OSError):
        return None
    names = [f"{stem}_{part}" for stem in matrices for part in ("values", "scales", "error")]
    if any(name not in checkpoint for name in names):
        return None
    with contextlib.suppress(OSError):
        path.touch()  # used last, for `forget_oldest`
    return {name: checkpoint[name].array() for name in names}


def quantized_files() -> list[Path]:
    """The files of quantized weights that are kept, those used last first."""
    return sorted(quantization_cache().glob("*.safetensors"), key=lambda p: p.stat().st_mtime, reverse=True)


def _reports(
    matrices: Mapping[str, QuantizedMatrix],
    params: Mapping[str, Array],
    parts: Mapping[str, Array],
    bytes_each: int,
) -> Iterable[PartQuantization]:
    by_part: dict[tuple[str, str], list[str]] = {}
    for stem, matrix in matrices.items():
        by_part.setdefault((matrix.part, matrix.scheme), []).append(stem)
    for (part, scheme), stems in by_part.items():
        errors = [float(parts[f"{stem}_error"][0]) for stem in stems]
        yield PartQuantization(
            part=part,
            scheme=scheme,
            matrices=len(stems),
            bytes_before=sum(params[matrices[stem].source].size * bytes_each for stem in stems),
            bytes_after=sum(parts[f"{s}_{p}"].nbytes for s in stems for p in ("values", "scales")),
            largest_error=max(errors),
            mean_error=sum(errors) / len(errors),
        )
