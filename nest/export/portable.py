"""What can be written of a model, whichever backend holds it: its program, its arrays by path, its entry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.ir.parammap import TensorSpec
from nest.ir.program import Program
from nest.ir.types import ParamSpec
from nest.registry import Entry
from nest.weights.checkpoint import numpy_dtype

__all__ = ["Portable", "portable"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Portable:
    """A model as its program and arrays.

    Attributes:
        program: the typed program.
        params: what the definition says of every parameter, by definition path.
        arrays: every parameter, in the same order.
        entry: the zoo entry that it was loaded from, or None.
    """

    program: Program
    params: Mapping[str, ParamSpec]
    arrays: Mapping[str, Array]
    entry: Entry | None

    @property
    def specs(self) -> dict[str, TensorSpec]:
        """Shape and dtype of each array."""
        return {path: TensorSpec(array.shape, _dtype_name(array)) for path, array in self.arrays.items()}

    def typed(self, path: str) -> Array:
        """A parameter in the element type that the program computes in."""
        dtype = numpy_dtype(self.params[path].dtype)
        return self.arrays[path] if dtype is None else np.asarray(self.arrays[path], dtype)


def portable(model: Any) -> Portable:
    """The parts of a loaded model. Arrays on the host are taken as they lie, others are copied to it.

    Raises:
        CallError: it is not a model of `nest.load`, or its parameters are not those of its definition any more.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    for module, name, read in _READERS:
        # The backend of a model that is here has been imported, and none other needs to be.
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(model, kind):
            if model.program.quantization:
                raise CallError(
                    f"{model.program.name} was loaded with quantize=, and what is saved are a definition's own "
                    f"parameters: load it without."
                )
            params = parameters(model.program)
            return Portable(model.program, params, _in_order(model.program, params, read(model)), model.entry)
    raise CallError(
        f"What nest.load returns can be saved, of any backend; {type(model).__name__} is no such model. For weights "
        f"of your own: nest.load(NAME, weights={{path: array}})."
    )


def _in_order(
    program: Program, specs: Mapping[str, ParamSpec], arrays: Mapping[str, Array]
) -> dict[str, Array]:
    faults = [f"'{path}' is missing" for path in specs if path not in arrays]
    faults += [f"'{path}' is no parameter of the definition" for path in arrays if path not in specs]
    faults += [
        f"'{path}' is {list(arrays[path].shape)}, and the definition has {list(spec.shape)}"
        for path, spec in specs.items()
        if path in arrays and arrays[path].shape != spec.shape
    ]
    if faults:
        raise CallError(
            f"{program.name} was changed, and cannot be written as it was: {'; '.join(faults[:8])}."
        )
    return {path: arrays[path] for path in specs}


def _of_torch(model: Any) -> dict[str, Array]:
    import torch

    def array(tensor: torch.Tensor) -> Array:
        host = tensor.detach().cpu().contiguous()
        if host.dtype != torch.bfloat16:
            return host.numpy()
        halves: Array = host.view(torch.uint16).numpy()
        dtype = numpy_dtype("bf16")
        return (
            halves.astype(np.uint32).__lshift__(16).view(np.float32) if dtype is None else halves.view(dtype)
        )

    return {path: array(tensor) for path, tensor in model.state_dict().items()}


def _of_nnx(model: Any) -> dict[str, Array]:
    from nest.backends.jax.nnx.variables import variables

    return {path: np.asarray(variable.get_raw_value()) for path, variable in variables(model)}


def _of_jax(model: Any) -> dict[str, Array]:
    return {path: np.asarray(array) for path, array in model.params.items()}


def _of_onnx(model: Any) -> dict[str, Array]:
    return {path: model.runtime.weights.tensor(path).numpy() for path in parameters(model.program)}


def _of_reference(model: Any) -> dict[str, Array]:
    arrays: Mapping[str, Array] = model.interpreter.params
    kinds = {path: numpy_dtype(spec.dtype) for path, spec in parameters(model.program).items()}
    # It computes in the program's types from arrays of any width: what it holds is what it was given.
    return {
        path: array if kinds[path] is None else np.asarray(array, kinds[path])
        for path, array in arrays.items()
    }


_READERS: tuple[tuple[str, str, Callable[[Any], dict[str, Array]]], ...] = (
    ("nest.backends.torch.module", "TorchModel", _of_torch),
    ("nest.backends.jax.nnx.model", "NnxModel", _of_nnx),
    ("nest.backends.jax.model", "JaxModel", _of_jax),
    ("nest.backends.onnx.model", "OnnxModel", _of_onnx),
    ("nest.backends.reference.model", "ReferenceModel", _of_reference),
)

_NAMES = {
    "bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip


def _dtype_name(array: Array) -> str:
    return _NAMES[array.dtype.name]
