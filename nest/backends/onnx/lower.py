"""From an entry of a program to an ONNX graph: inlined, its sizes in the entry's own symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from nest.backends.onnx.dims import Dims
from nest.backends.onnx.graph import Graph, Tensor, Type
from nest.backends.onnx.rules import RULES, Lowering
from nest.backends.onnx.states import StatePort, StateValues
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.inventory import states
from nest.ir.passes import eliminate_dead_code, inline
from nest.ir.program import Function, Node, Program, Value, path_text
from nest.ir.types import TensorType

__all__ = ["EntryGraph", "lower"]


@dataclass(frozen=True)
class EntryGraph:
    """An entry as an ONNX model.

    Attributes:
        model: the graph; parameters are stored outside it.
        arguments: the inputs that the entry's arguments are, in order.
        results: the outputs that its results are, in order.
        states: the other inputs and outputs.
    """

    model: ir.Model
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    states: tuple[StatePort, ...]


def lower(program: Program, name: str, parameter: Callable[[str], ir.ExternalTensor]) -> EntryGraph:
    """The graph of an entry.

    Args:
        parameter: gives the stored tensor of a parameter, by definition path.

    Raises:
        DefinitionError: an op that has no rule.
    """
    function = inline(program, name)
    eliminate_dead_code(function)
    graph = Graph(parameter)
    dims = Dims(graph)
    types = {p: Type(tuple(map(Dim.of, s.shape)), s.dtype) for p, s in states(program).items()}
    values = StateValues(graph, dims, types)
    lowered = _Lowered(graph, dims, values, function)
    arguments = [lowered.argument(v) for v in function.arguments]
    results = lowered.run()
    labels = ["result"] if function.signature.single else [f"result_{i}" for i in range(len(results))]
    outputs = [str(graph.output(label, x).name) for label, x in zip(labels, results, strict=True)]
    ports = values.ports()
    model = graph.model(f"{program.name}.{name}", function.doc)
    return EntryGraph(model, tuple(arguments), tuple(outputs), ports)


class _Lowered:
    """A flat function while it becomes a graph."""

    def __init__(self, graph: Graph, dims: Dims, states: StateValues, function: Function) -> None:
        self.graph = graph
        self.dims = dims
        self.states = states
        self.function = function
        self.values: dict[int, Tensor] = {}
        numbers = {n: v.value for n, v in function.block.generics.items() if isinstance(v, Dim)}
        self.generics = {n: Dim.constant(v) for n, v in numbers.items() if v is not None}

    def argument(self, value: Value) -> str:
        """Make the input of an argument; its name."""
        tensor = self.graph.input(str(value.name), self.type(value.type))
        self.dims.bind(tensor)
        self.values[id(value)] = tensor
        return str(tensor.value.name)

    def run(self) -> list[Tensor]:
        """The function's results."""
        for node in self.function.nodes:
            for value, tensor in zip(node.outputs, self._node(node), strict=True):
                self.values[id(value)] = tensor
        return [self.values[id(v)] for v in self.function.results]

    def type(self, type_: TensorType) -> Type:
        """A type in the symbols that have no number: the entry's and the session's."""
        return Type(tuple(d.substitute(self.generics) for d in type_.shape), type_.dtype.value)

    def _operand(self, x: Any) -> Any:
        return self.values[id(x)] if isinstance(x, Value) else self._attribute(x)

    def _attribute(self, x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(self._attribute, x))
        return x.substitute(self.generics) if isinstance(x, Dim) else x

    def _node(self, node: Node) -> tuple[Tensor, ...]:
        handler = _HANDLERS.get(node.op)
        return handler(self, node) if handler is not None else self._rule(node)

    def _rule(self, node: Node) -> tuple[Tensor, ...]:
        rule = RULES.get(node.op)
        if rule is None:
            raise DefinitionError(f"The ONNX backend has no rule for the op '{node.op}'.")
        types = [self.type(v.type) for v in node.outputs]
        attributes = {n: self._attribute(v) for n, v in node.attrs.items()}
        low = Lowering(self.graph, self.dims, types[0])
        made = rule(low, *map(self._operand, node.inputs), **attributes)
        values = made if isinstance(made, tuple) else (made,)
        return tuple(Tensor(t.shape, t.dtype, v) for t, v in zip(types, values, strict=True))

    # -- what is not an op of its own ------------------------------------------------------------------------

    def _param(self, node: Node) -> tuple[Tensor, ...]:
        type_ = self.type(node.outputs[0].type)
        # Nodes are named after the block whose parameters were read last.
        self.graph.scope = path_text(node.attrs["path"][:-1])
        return (Tensor(type_.shape, type_.dtype, self.graph.parameter(path_text(node.attrs["path"]))),)

    def _read(self, node: Node) -> tuple[Tensor, ...]:
        return (self.states.read(path_text(node.attrs["path"])),)

    def _assign(self, node: Node) -> tuple[Tensor, ...]:
        self.states.assign(path_text(node.attrs["path"]), self._operand(node.inputs[0]))
        return ()

    def _update(self, node: Node) -> tuple[Tensor, ...]:
        value, pos = map(self._operand, node.inputs)
        axes = {"axis": node.attrs["axis"], "batch_axis": node.attrs["batch_axis"]}
        return (self.states.update(path_text(node.attrs["path"]), value, pos, **axes),)


_HANDLERS: dict[str, Callable[[_Lowered, Node], tuple[Tensor, ...]]] = {
    "param": _Lowered._param,
    "read": _Lowered._read,
    "assign": _Lowered._assign,
    "update": _Lowered._update,
}
