"""Weights once: a safetensors file under definition paths, which all graphs refer to."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from nest.backends.onnx.element_types import ONNX
from nest.export.checkpoint import WEIGHTS
from nest.export.folder import Staged
from nest.export.portable import Portable
from nest.ir.parammap import TensorSpec
from nest.weights._header import read_header
from nest.weights.writer import write_safetensors

__all__ = ["stored_weights"]


def stored_weights(folder: Staged, model: Portable) -> Callable[[str], ir.ExternalTensor]:
    """Write every parameter in the type that the program computes in; gives one as an initializer.

    ONNX's external data is an offset into a file, so that the file may be one that other programs read by name.
    """
    path = folder.path / WEIGHTS
    specs = {name: TensorSpec(spec.shape, spec.dtype) for name, spec in model.params.items()}
    write_safetensors(path, specs, model.typed)
    with path.open("rb") as file:
        extents = read_header(file, path, path.stat().st_size)

    def tensor(name: str) -> ir.ExternalTensor:
        extent = extents[name]
        return ir.ExternalTensor(
            WEIGHTS,
            extent.offset,
            extent.size,
            ONNX[extent.spec.dtype],
            shape=ir.Shape(extent.spec.shape),
            name=name,
            base_dir=folder.path,
        )

    return tensor
