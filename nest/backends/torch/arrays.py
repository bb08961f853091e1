"""Arrays in and out of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["DTYPES", "NAMES", "TorchArrays"]

DTYPES: dict[str, torch.dtype] = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}


NAMES = {dtype: name for name, dtype in DTYPES.items()}


_KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool", "c": "complex"}
_WIDE = (torch.uint16, torch.uint32, torch.uint64)


class TorchArrays:
    """See `nest.backends.calls.Arrays`; native arrays are tensors on one device.

    Args:
        stay: what is on the host is left there, for who copies it to the device into memory of its own.
    """

    def __init__(self, device: torch.device, *, stay: bool = False) -> None:
        self.device = device
        self._stay = stay

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def kind(self, x: Any) -> str:
        if isinstance(x, torch.Tensor):
            if x.dtype == torch.bool:
                return "bool"
            if x.dtype.is_floating_point:
                return "float"
            return "complex" if x.dtype.is_complex else "int"
        return _KINDS.get(x.dtype.kind) or str(x.dtype)

    def is_array(self, x: Any) -> bool:
        if isinstance(x, torch.Tensor):
            return x.layout is torch.strided and not (x.is_nested or x.is_quantized or self._is_empty_form(x))
        return isinstance(x, np.ndarray)

    def _is_empty_form(self, x: torch.Tensor) -> bool:
        return x.is_meta and self.device.type != "meta"

    def from_python(self, x: Any, kind: str) -> Any:
        if isinstance(x, torch.Tensor):
            raise TypeError(
                "a tensor on 'meta' has none"
                if self._is_empty_form(x)
                else f"a dense, unquantized tensor is taken, and this one is of {x.dtype} and {x.layout}"
            )
        array = np.asarray(x)
        if array.size == 0 and array.dtype.kind == "f" and kind == "int":
            array = array.astype(np.int32)
        return array

    def bounds(self, x: Any) -> tuple[int, int] | None:
        if isinstance(x, np.ndarray):
            return None if x.size == 0 else (int(x.min()), int(x.max()))
        if x.numel() == 0 or x.device.type != "cpu" or torch.compiler.is_compiling():
            return None
        if x.dtype in _WIDE:  # torch has no reductions for them
            return self.bounds(x.numpy())
        low, high = torch.aminmax(x)
        return int(low), int(high)

    def native(self, x: Any, dtype: str) -> torch.Tensor:
        if isinstance(x, np.ndarray):
            # Torch cannot hold numpy's negative strides, foreign byte orders or read-only memory without a copy.
            plain = (
                x if x.flags.writeable and x.dtype.isnative and all(s >= 0 for s in x.strides) else x.copy()
            )
            if not plain.dtype.isnative:
                plain = plain.astype(plain.dtype.newbyteorder("="))
            if plain.dtype.kind == "f" and plain.dtype.itemsize > 8:  # numpy's longdouble
                plain = plain.astype(np.float64)
            if plain.dtype.kind == "u" and plain.dtype.itemsize > 1:
                plain = plain.astype(np.int64)
            x = torch.from_numpy(plain)
        device = x.device if self._stay and x.device.type == "cpu" else self.device
        tensor: torch.Tensor = x.to(device=device, dtype=DTYPES[dtype])
        return tensor

    def full(self, shape: Sequence[int], value: int, dtype: str) -> torch.Tensor:
        return torch.full(tuple(shape), value, dtype=DTYPES[dtype], device=self.device)

    def numpy(self, x: torch.Tensor) -> np.ndarray[Any, Any]:
        """A tensor as a numpy array on the host; bf16, which numpy lacks, becomes f32."""
        host = x.detach().cpu()
        array: np.ndarray[Any, Any] = (host.float() if host.dtype == torch.bfloat16 else host).numpy()
        return array
