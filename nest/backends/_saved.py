"""Saved sessions: the states as a safetensors file that says which program they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import CallError, WeightsError
from nest.ir.inventory import states
from nest.ir.printer import digest
from nest.ir.program import Program
from nest.weights import open_checkpoint
from nest.weights._files import atomic

__all__ = ["read_session", "write_session"]

Array = npt.NDArray[Any]

_FORM = "nest.session.1"
_DTYPES = {
    "f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8", "u1": "U8", "b1": "BOOL",
}  # fmt: skip


def write_session(
    path: Path, program: Program, symbols: Mapping[str, int], values: Mapping[str, Array]
) -> None:
    """Write states, whole or not at all; those of bf16, which come as f32, in their own type.

    Raises:
        OSError: the file cannot be written.
    """
    stored = {n: _stored(values[n], spec.dtype) for n, spec in states(program).items()}
    header: dict[str, Any] = {"__metadata__": _metadata(program, symbols)}
    end = 0
    # The format asks for aligned tensors: the widest type first.
    names = sorted(stored, key=lambda n: (-stored[n][1].itemsize, n))
    for name in names:
        dtype, array = stored[name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(stored[name][1].data)


def read_session(path: Path, program: Program, symbols: Mapping[str, int]) -> dict[str, Array]:
    """The states of a file, mapped.

    Raises:
        CallError: they belong to another program, or to a session of other symbols.
        WeightsError: the file is missing, damaged, or no saved session.
    """
    checkpoint = open_checkpoint(path)
    found = _read_metadata(path)
    wanted = _metadata(program, symbols)
    if found.get("form") != _FORM:
        raise WeightsError(
            f"{path} is no saved session: its metadata has form {found.get('form')!r}, not {_FORM!r}. Files of "
            f"session.save are."
        )
    if found.get("program") != wanted["program"]:
        raise CallError(
            f"{path} was saved from a session of another program, {found.get('name')!r}: expected {program.name!r} "
            f"with the digest {wanted['program'][:12]}, found {str(found.get('program'))[:12]}. Load the model with "
            f"the generics, the dtype and the version of nest that it was saved with."
        )
    if found.get("symbols") != wanted["symbols"]:
        raise CallError(
            f"{path} was saved from a session with {found.get('symbols')}, and this one has {wanted['symbols']}: take "
            f"model.new_session({found.get('symbols')})."
        )
    return {name: tensor.array() for name, tensor in checkpoint.items()}


def _metadata(program: Program, symbols: Mapping[str, int]) -> dict[str, str]:
    text = ", ".join(f"{name}={value}" for name, value in sorted(symbols.items()))
    return {"form": _FORM, "name": program.name, "program": digest(program), "symbols": text}


def _read_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a file whose header is known to be whole."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    found = header.get("__metadata__")
    return found if isinstance(found, dict) else {}


def _stored(array: Array, dtype: str) -> tuple[str, Array]:
    """The format's name of a type, and the array as its bytes lie in the file."""
    plain = np.ascontiguousarray(array)
    if dtype == "bf16" and plain.dtype == np.float32:
        # Exact: what was widened has nothing in its lower half.
        return "BF16", (plain.view(np.uint32) >> np.uint32(16)).astype("<u2")
    little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return _DTYPES[little.dtype.str[1:]], little
