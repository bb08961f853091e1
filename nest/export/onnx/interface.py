"""What `io.json` says of a graph: its inputs and outputs, and which output takes the place of which input."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from nest.backends.onnx.lower import EntryGraph
from nest.errors import DefinitionError
from nest.export.rules import rule_texts
from nest.ir.inventory import states
from nest.ir.program import Function, Program

__all__ = ["graph_facts"]

Json = dict[str, Any]


def graph_facts(program: Program, name: str, graph: EntryGraph) -> Json:
    """The interface of an entry's graph. Axes are numbers, or names that the caller gives sizes."""
    function = program.entries[name]
    values = {str(v.name): v for v in (*graph.model.graph.inputs, *graph.model.graph.outputs)}
    rules = rule_texts(program, function)
    facts: Json = {
        "file": f"{name}.onnx",
        "doc": (function.doc or "").partition("\n")[0],
        "inputs": [_input(function, n, values[n]) for n in graph.arguments],
        "outputs": [_tensor(n, values[n]) for n in graph.results],
    }
    if graph.states:
        specs = states(program)
        facts["states"] = [
            {
                "state": port.path,
                "input": port.input,
                "output": port.output,
                "in_place": port.in_place,
                "batch_axis": specs[port.path].batch_axis,
                **_type(values[str(port.input or port.output)]),
            }
            for port in graph.states
        ]
    return {**facts, **({"rules": rules} if rules else {})}


def _input(function: Function, name: str, value: ir.Value) -> Json:
    """An argument; `default` is what nest gives it where it is left out, and a program has to give itself."""
    fills = {str(p.name): p.fill for p in function.signature.parameters}
    fill = fills.get(name)
    return {**_tensor(name, value), **({} if fill is None else {"default": str(fill)})}


def _tensor(name: str, value: ir.Value) -> Json:
    return {"name": name, **_type(value)}


def _type(value: ir.Value) -> Json:
    if value.dtype is None or value.shape is None:
        raise DefinitionError(f"The graph's tensor '{value.name}' has no type.")
    axes = [d if isinstance(d, int) else str(d.value) for d in value.shape]
    return {"dtype": value.dtype.numpy().name, "shape": axes}
