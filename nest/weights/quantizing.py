"""A program and its parameters, quantized: what `nest.load` does where `quantize=` is given."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from nest.ir.dtype import bytes_per_element
from nest.ir.passes.quantize import quantize
from nest.ir.program import Program
from nest.registry import Entry
from nest.weights.folder import weights_files
from nest.weights.quantized import quantized_parameters

__all__ = ["quantized"]


def quantized(
    program: Program,
    asked: str | Mapping[str, str | None],
    params: Mapping[str, npt.NDArray[Any]],
    entry: Entry | None,
    weights: Any,
) -> tuple[Program, dict[str, npt.NDArray[Any]]]:
    """The quantized program, which knows what became of the weights, and its parameters.

    Args:
        program: the definition's.
        asked: see `nest.ir.passes.quantize`.
        params: the definition's parameters.
        weights: where they are from, as `nest.load` takes it.

    Raises:
        CallError: what is asked for cannot be.
        WeightsError: a weight is no finite number.
    """
    made = quantize(program, asked)
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
        facts = [(p.resolve(), p.stat()) for p in weights_files(weights)]
        lines = [f"{path} {s.st_size} {s.st_mtime_ns}" for path, s in facts]
    return hashlib.sha256("\n".join([*lines, repr(entry.bindings)]).encode()).hexdigest()
