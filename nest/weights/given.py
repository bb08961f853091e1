"""Weights that a caller has as arrays, by definition path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nest._suggest import did_you_mean
from nest.errors import BindingError
from nest.ir.types import ParamSpec

__all__ = ["given_arrays"]


def given_arrays(
    program: str, specs: Mapping[str, ParamSpec], weights: Mapping[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    """The array of every parameter, in its own width and without a copy where numpy can hold it so.

    Args:
        program: whose parameters, for the error.
        specs: the parameters.
        weights: an array or a tensor of any framework for each; a tensor that trains is taken as it is now.

    Raises:
        BindingError: one is missing, unknown, of another shape or kind, or no array: all of them, by path.
    """
    faults = [f"parameter '{n}' {list(specs[n].shape)} is missing" for n in specs if n not in weights]
    faults += [
        f"{n!r} is no parameter.{did_you_mean(n, specs) if isinstance(n, str) else ''}"
        for n in weights
        if n not in specs
    ]
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, spec in specs.items():
        if name not in weights:
            continue
        try:
            arrays[name] = _array(weights[name], spec)
        except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: of torch
            faults.append(f"parameter '{name}' cannot be read as an array of numbers ({error})")
            continue
        if fault := _fault(arrays[name], spec):
            faults.append(f"parameter '{name}' {fault}")
    if faults:
        raise BindingError(f"{program}: the given weights do not fit:\n  " + "\n  ".join(faults))
    return arrays


def _array(value: Any, spec: ParamSpec) -> npt.NDArray[Any]:
    bare = not hasattr(value, "dtype")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype).startswith(("torch.bfloat16", "torch.float8")):
            value = value.float()  # exact; torch gives numpy none of these
    array = np.asarray(value)
    if bare and array.dtype.kind == "i" and _wanted(spec) == "float":
        return array.astype(np.float64)  # numbers as they are written: [1, 2]
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # numpy's longdouble, which no framework has
        array = array.astype(np.float64)
    return array.copy() if any(stride < 0 for stride in array.strides) else array


def _fault(array: npt.NDArray[Any], spec: ParamSpec) -> str | None:
    if array.shape != spec.shape:
        return f"must be {list(spec.shape)}, and is {list(array.shape)}"
    if _kind(array) != _wanted(spec):
        return f"is {spec.dtype}, and holds {array.dtype} values"
    return None


def _kind(array: npt.NDArray[Any]) -> str:
    if array.dtype.name.startswith(("bfloat", "float")):  # those of ml_dtypes are of no kind that numpy knows
        return "float"
    return {"i": "int", "u": "int", "b": "bool"}.get(array.dtype.kind, "other")


def _wanted(spec: ParamSpec) -> str:
    return "bool" if spec.dtype == "bool" else "float" if "f" in spec.dtype else "int"
