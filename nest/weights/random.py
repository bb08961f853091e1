"""Random parameters, the same on every backend for one seed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.errors import DefinitionError
from nest.ir.types import ParamSpec

__all__ = ["random_parameters"]


def random_parameters(params: Mapping[str, ParamSpec], seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """An array for each parameter, drawn as its `init` says.

    A parameter's values depend on the seed, its path and its shape alone, so that adding a layer changes no other.
    """
    return {path: _draw(spec, seed) for path, spec in params.items()}


def _draw(spec: ParamSpec, seed: int) -> np.ndarray[Any, Any]:
    dtype = _numpy_dtype(spec.dtype)
    if spec.init in ("zeros", "ones"):
        return np.full(spec.shape, float(spec.init == "ones"), dtype)
    if spec.init == "normal":
        scale = 0.02
    elif spec.init == "fan_in":
        scale = 1 / math.sqrt(max(1, math.prod(spec.shape[1:])))
    else:
        raise DefinitionError(
            f"Parameter '{spec.path}' has init='{spec.init}'; nest knows 'normal', 'fan_in', 'zeros' and 'ones'."
        )
    generator = np.random.Generator(np.random.SFC64([seed, zlib.crc32(spec.path.encode())]))
    values = generator.standard_normal(spec.shape, dtype=np.float32)
    values *= np.float32(scale)
    return values.astype(dtype, copy=False)


def _numpy_dtype(name: str) -> Any:
    # Half precision is drawn in f32 and rounded once by the backend.
    return np.float64 if name == "f64" else np.float32
