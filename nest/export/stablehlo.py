"""Entries as StableHLO, for programs that have jax and not nest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nest import __version__
from nest.backends.jax.engine import used_states, written_states
from nest.backends.jax.model import build
from nest.export.checkpoint import WEIGHTS, write_weights
from nest.export.folder import Staged
from nest.export.portable import Portable
from nest.export.rules import rule_texts
from nest.ir.inventory import default_capacity, states
from nest.ir.program import Program
from nest.ir.types import StateSpec, TensorType

__all__ = ["write_stablehlo"]

VERSION = 1
Json = dict[str, Any]


def write_stablehlo(folder: Staged, model: Portable, platforms: Sequence[str]) -> None:
    """Write each entry as `jax.export` serializes it, the weights under definition paths, and `io.json`.

    Sizes that a call decides stay symbolic; `Batch` and `Capacity` are fixed, at one row and the largest capacity.
    """
    jax_model = build(model.program, model.arrays, entry=model.entry)
    session = {"Batch": 1}
    if (capacity := default_capacity(model.program)) is not None:
        session["Capacity"] = capacity
    specs = states(model.program)
    entries = {}
    for name in model.program.entries:
        exported = jax_model.export(name, platforms=tuple(platforms), **session)
        folder.write(f"{name}.jax_export", bytes(exported.serialize()))
        folder.write(f"{name}.mlirbc", exported.mlir_module_serialized)
        entries[name] = _facts(model.program, name, specs, session)
    write_weights(folder, model)
    facts = {
        "version": VERSION,
        "producer": f"nest {__version__}",
        "model": model.program.name,
        "platforms": list(platforms),
        "weights": WEIGHTS,
        "entries": entries,
    }
    folder.write("io.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _facts(program: Program, name: str, specs: Mapping[str, StateSpec], session: Mapping[str, int]) -> Json:
    """How an entry is called: `f(params, kept, written, *arguments) -> (results, written)`."""
    function = program.entries[name]
    written, rules = written_states(function), rule_texts(program, function)

    def group(paths: Sequence[str]) -> Json:
        return {p: {"dtype": specs[p].dtype, "shape": list(specs[p].bound(session))} for p in paths}

    return {
        "file": f"{name}.jax_export",
        "module": f"{name}.mlirbc",
        "doc": (function.doc or "").partition("\n")[0],
        "arguments": [{"name": p.name, **_type(p.type, session)} for p in function.signature.parameters],
        "results": [_type(t, session) for t in function.signature.results],
        "kept": group([p for p in used_states(function) if p not in written]),
        "written": group(written),
        **({"rules": rules} if rules else {}),
    }


def _type(type_: TensorType, session: Mapping[str, int]) -> Json:
    shape = [d.value if d.value is not None else session.get(str(d), str(d)) for d in type_.shape]
    return {"dtype": type_.dtype.value, "shape": shape}
