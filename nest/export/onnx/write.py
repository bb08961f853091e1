"""The folder: graphs over one file of weights, `io.json`, and for a task what it needs around the graphs."""

from __future__ import annotations

import json
from typing import Any

import onnx_ir as ir

from nest import __version__
from nest.backends.onnx.graph import OPSET, OPSETS
from nest.backends.onnx.lower import EntryGraph, lower
from nest.errors import CallError
from nest.export.checkpoint import WEIGHTS
from nest.export.folder import Staged
from nest.export.onnx.interface import graph_facts
from nest.export.onnx.runtimes import OLDEST
from nest.export.onnx.speech import write_speech
from nest.export.onnx.stored import stored_weights
from nest.export.portable import Portable
from nest.ir.inventory import default_capacity

__all__ = ["write_onnx"]

VERSION = 1
"""Of `io.json` and of the names of tensors: a name that changes or goes makes it 2."""

WHOLE = frozenset({"hear"})
"""Entries that begin every state themselves: their graphs neither take nor give states."""


def write_onnx(folder: Staged, model: Portable, opset: int | None, *, local_files_only: bool) -> None:
    """Write the folder.

    Args:
        opset: the operator set, the newest that nest writes if None.
        local_files_only: take the tokenizer from this machine.

    Raises:
        CallError: an operator set that nest does not write, or a model of bf16.
        FetchError, DigestError, WeightsError: the tokenizer cannot be had.
    """
    chosen = _checked(model, OPSET if opset is None else opset)
    parameter = stored_weights(folder, model)
    graphs = {}
    for name in model.program.entries:
        capacity = default_capacity(model.program) if name in WHOLE else None
        graph = lower(model.program, name, parameter, chosen, capacity)
        _write_graph(folder, model, name, graph)
        graphs[name] = graph_facts(model.program, name, graph)
    facts = {**_heading(model, chosen), "graphs": graphs, **write_speech(folder, model, local_files_only)}
    folder.write("io.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _checked(model: Portable, opset: int) -> int:
    if opset not in OPSETS:
        raise CallError(
            f"nest writes ONNX in the operator sets {min(OPSETS)} to {max(OPSETS)}; opset={opset} was given."
        )
    if any(getattr(g, "value", None) == "bf16" for g in model.program.root.generics.values()):
        raise CallError(
            f"{model.program.name}: ONNX Runtime has no kernels for bf16 on the CPU, so that nobody could try what was "
            f"written; load the model with dtype='f32' or dtype='f16'."
        )
    return opset


def _write_graph(folder: Staged, model: Portable, name: str, graph: EntryGraph) -> None:
    entry = model.entry
    graph.model.producer_version = __version__
    graph.model.metadata_props.update({"nest.io": str(VERSION), "nest.entry": name})
    if entry is not None and entry.manifest.weights is not None:
        weights = entry.manifest.weights
        graph.model.metadata_props.update({"source": weights.repo, "revision": weights.revision})
    folder.write(f"{name}.onnx", ir.to_proto(graph.model).SerializeToString())


def _heading(model: Portable, opset: int) -> dict[str, Any]:
    capacity = default_capacity(model.program)
    facts: dict[str, Any] = {
        "version": VERSION,
        "producer": f"nest {__version__}",
        "model": _source(model),
        "opset": opset,
        "ir_version": OPSETS[opset],
        "onnxruntime": f">={OLDEST[opset]}",
        "weights": WEIGHTS,
        "symbols": {"Batch": "rows", "Capacity": "slots of the caches"},
    }
    if capacity is not None:
        facts["largest"] = {"Capacity": capacity}
    return facts


def _source(model: Portable) -> dict[str, str]:
    if model.entry is None:
        return {"name": model.program.name}
    manifest = model.entry.manifest
    facts = {"name": model.entry.name, "title": manifest.model.title, "license": manifest.model.license}
    if manifest.weights is not None:
        facts |= {"repo": manifest.weights.repo, "revision": manifest.weights.revision}
    return facts
