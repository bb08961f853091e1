"""Write safetensors files: one tensor in memory at a time, the same bytes for the same tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import WeightsError
from nest.ir.parammap import STORED_DTYPES, TensorSpec
from nest.weights._files import atomic
from nest.weights._header import SAFETENSORS_DTYPES

__all__ = ["write_safetensors"]


def write_safetensors(
    path: Path, specs: Mapping[str, TensorSpec], read: Callable[[str], npt.NDArray[Any]]
) -> None:
    """Write the tensors of `specs` to `path`, whole or not at all.

    Tensors lie in the order of their element size (largest first, which aligns them) and name.

    Args:
        path: the file to write or replace.
        specs: shape and dtype of each tensor.
        read: gives a tensor's array by name; called once for each.

    Raises:
        WeightsError: an array differs from its spec.
        OSError: the file cannot be written.
    """
    names = sorted(specs, key=lambda name: (-STORED_DTYPES[specs[name].dtype], name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in names:
        size = math.prod(specs[name].shape) * STORED_DTYPES[specs[name].dtype]
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[specs[name].dtype],
            "shape": list(specs[name].shape),
            "data_offsets": [end, end + size],
        }
        end += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with atomic(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(_bytes(name, specs[name], read(name)))


def _bytes(name: str, spec: TensorSpec, array: npt.NDArray[Any]) -> memoryview | bytes:
    if array.shape != spec.shape or array.itemsize != STORED_DTYPES[spec.dtype]:
        raise WeightsError(
            f"Tensor '{name}' was declared as {spec}; its array is {array.dtype}{list(array.shape)}."
        )
    return np.ascontiguousarray(array).tobytes()
