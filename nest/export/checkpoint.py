"""Weights as one safetensors file: under definition paths, or as their publisher names and lays them out."""

from __future__ import annotations

from nest.errors import CallError
from nest.export.companions import write_companions
from nest.export.folder import Staged
from nest.export.portable import Portable
from nest.export.stored import stored_tensors
from nest.weights.evaluate import evaluate
from nest.weights.writer import write_safetensors

__all__ = ["WEIGHTS", "write_hf", "write_weights"]

WEIGHTS = "model.safetensors"


def write_weights(folder: Staged, model: Portable) -> None:
    """Every parameter under its definition path."""
    write_safetensors(folder.path / WEIGHTS, model.specs, lambda path: model.arrays[path])


def write_hf(folder: Staged, model: Portable) -> None:
    """The checkpoint's own tensors, and the files that make the reference library open the folder.

    Raises:
        CallError: the model has no entry, whose bindings say what the tensors are.
        BindingError: the bindings cannot be undone for a model of this size.
    """
    if model.entry is None:
        raise CallError(
            f"{model.program.name} was built from a class, so nothing says how a checkpoint names its tensors; "
            f"format='safetensors' writes them under definition paths."
        )
    stored, specs = stored_tensors(model, model.entry)
    ours = model.specs
    write_safetensors(
        folder.path / WEIGHTS, specs, lambda name: evaluate(stored[name], ours, model.arrays.__getitem__)
    )
    write_companions(folder, model, model.entry)
