"""What `nest.load` does where weights are to be quantized."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nest.ir.dtype import bytes_per_element
from nest.ir.passes.quantize import QuantizedProgram, quantize
from nest.ir.program import Program
from nest.registry import Entry

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["quantized", "with_weights"]


def quantized(program: Program, asked: str | Mapping[str, str | None]) -> QuantizedProgram:
    """The program over quantized weights; see `nest.ir.passes.quantize`."""
    return quantize(program, asked)


def with_weights(
    made: QuantizedProgram,
    program: Program,
    params: Mapping[str, npt.NDArray[Any]],
    entry: Entry | None,
    weights: Any,
) -> tuple[Program, dict[str, npt.NDArray[Any]]]:
    """The quantized program, with what became of the weights, and its parameters.

    Args:
        program: the definition's.
        params: its parameters.
        weights: where they are from, as `nest.load` takes it.
    """
    from nest.weights.quantized import quantized_parameters

    generic = program.root.generics.get("T")
    each = bytes_per_element(str(getattr(generic, "value", "f32")))
    own, reports = quantized_parameters(made, params, each, _identity(entry, weights))
    return replace(made.program, quantization=reports), own


def _identity(entry: Entry | None, weights: Any) -> str | None:
    """A name for weights that last and are known, by digest or as files; None for others."""
    if entry is None or weights is None or isinstance(weights, Mapping):
        return None
    if weights == "pinned":
        files = entry.manifest.weights.files if entry.manifest.weights else []
        if not all(f.sha256 for f in files if f.name.endswith(".safetensors")):
            return None
        lines = [f"{f.name} {f.sha256}" for f in files]
    else:
        from nest.weights.folder import weights_files

        facts = [(p.resolve(), p.stat()) for p in weights_files(weights)]
        lines = [f"{path} {s.st_size} {s.st_mtime_ns}" for path, s in facts]
    return hashlib.sha256("\n".join([*lines, repr(entry.bindings)]).encode()).hexdigest()
