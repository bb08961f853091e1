"""From an entry of a program to an ONNX graph: inlined, its sizes in the entry's own symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from nest.backends.onnx.dims import Dims
from nest.backends.onnx.graph import OPSET, Graph, Tensor, Type
from nest.backends.onnx.growth import growing
from nest.backends.onnx.ports import Ports
from nest.backends.onnx.rows import BY_ROWS, flat
from nest.backends.onnx.rules import RULES, Lowering
from nest.backends.onnx.states import StateValues
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.inventory import states
from nest.ir.passes import eliminate_dead_code, inline
from nest.ir.program import Function, Node, Path, Program, Value, path_text
from nest.ir.types import TensorType

__all__ = ["EntryGraph", "lower"]


@dataclass(frozen=True)
class EntryGraph(Ports):
    """An entry as an ONNX model.

    Attributes:
        model: the graph; parameters are stored outside it.
    """

    model: ir.Model

    @property
    def ports(self) -> Ports:
        """Its inputs and outputs alone."""
        return Ports(self.arguments, self.results, self.states)


def lower(
    program: Program,
    name: str,
    parameter: Callable[[str], ir.ExternalTensor],
    opset: int = OPSET,
    capacity: int | None = None,
    *,
    contrib: bool = False,
) -> EntryGraph:
    """The graph of an entry.

    Args:
        parameter: gives the stored tensor of a parameter, by definition path.
        opset: the operator set, one of `OPSETS`.
        capacity: make the states inside the graph, zero and of so many slots, so that it neither takes nor gives any.
        contrib: ONNX Runtime's own ops may be used where they are faster.

    Raises:
        DefinitionError: an op that has no rule.
    """
    function = inline(program, name)
    eliminate_dead_code(function)
    graph = Graph(parameter, opset, contrib=contrib)
    dims = Dims(graph)
    sizes = {} if capacity is None else {"Capacity": Dim.constant(capacity)}
    types = {
        p: Type(tuple(Dim.of(d).substitute(sizes) for d in s.shape), s.dtype)
        for p, s in states(program).items()
    }
    values = StateValues(graph, dims, types, inside=capacity is not None)
    frame = _Frame(graph, dims, values, function, (), sizes)
    inputs = [graph.input(str(v.name), frame.type(v.type)) for v in function.arguments]
    for tensor in inputs:
        dims.bind(tensor)
    results = frame.run(inputs)
    labels = ["result"] if function.signature.single else [f"result_{i}" for i in range(len(results))]
    outputs = [str(graph.output(label, x).name) for label, x in zip(labels, results, strict=True)]
    ports = values.ports()
    model = graph.model(f"{program.name}.{name}", function.doc)
    return EntryGraph(tuple(str(x.value.name) for x in inputs), tuple(outputs), ports, model)


class _Frame:
    """A function while it becomes nodes: the entry itself, or what the body of a loop runs.

    Args:
        path: of the block whose function it is.
        symbols: what the function's symbols are in the entry.
    """

    def __init__(
        self,
        graph: Graph,
        dims: Dims,
        states: StateValues,
        function: Function,
        path: Path,
        symbols: Mapping[str, Dim],
    ) -> None:
        self.graph = graph
        self.dims = dims
        self.states = states
        self.function = function
        self.path = path
        self.given = dict(symbols)
        self.values: dict[int, Tensor] = {}
        numbers = {n: v.value for n, v in function.block.generics.items() if isinstance(v, Dim)}
        # A generic is its number here: two blocks may give one name to different sizes.
        self.symbols = {n: Dim.constant(v) for n, v in numbers.items() if v is not None} | self.given

    def inner(self, function: Function, path: Path, symbols: Mapping[str, Dim]) -> _Frame:
        """A function that this one runs."""
        return _Frame(self.graph, self.dims, self.states, function, path, symbols)

    def run(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The function's results."""
        self.values.update(zip(map(id, self.function.arguments), arguments, strict=True))
        for node in self.function.nodes:
            handler = _HANDLERS.get(node.op, _Frame._rule)
            for value, tensor in zip(node.outputs, handler(self, node), strict=True):
                self.values[id(value)] = tensor
        return [self.values[id(v)] for v in self.function.results]

    def type(self, type_: TensorType) -> Type:
        """A type in the symbols that have no number: the entry's and the session's."""
        return Type(tuple(map(self.attribute, type_.shape)), type_.dtype.value)

    def operand(self, x: Any) -> Any:
        """A node's input: a tensor, a number or None."""
        return self.values[id(x)] if isinstance(x, Value) else self.attribute(x)

    def attribute(self, x: Any) -> Any:
        """An attribute, with dims in the entry's symbols."""
        if isinstance(x, tuple):
            return tuple(map(self.attribute, x))
        return x.substitute(self.symbols) if isinstance(x, Dim) else x

    def _rule(self, node: Node) -> list[Tensor]:
        rule = RULES.get(node.op)
        if rule is None:
            raise DefinitionError(f"The ONNX backend has no rule for the op '{node.op}'.")
        types = [self.type(v.type) for v in node.outputs]
        attributes = {n: self.attribute(v) for n, v in node.attrs.items()}
        operands = [self.operand(x) for x in node.inputs]
        if node.op in BY_ROWS and (rows := flat(self.dims, operands, types[0])) is not None:
            low = Lowering(self.graph, self.dims, rows.type)
            made = rule(low, *rows.operands, **attributes)
            assert not isinstance(made, tuple)
            value = self.dims.reshape(made, rows.type.shape, types[0].shape)
            return [Tensor(types[0].shape, types[0].dtype, value)]
        low = Lowering(self.graph, self.dims, types[0])
        made = rule(low, *operands, **attributes)
        values = made if isinstance(made, tuple) else (made,)
        return [Tensor(t.shape, t.dtype, v) for t, v in zip(types, values, strict=True)]

    # -- what is not an op of its own ------------------------------------------------------------------------

    def _name(self, node: Node) -> str:
        return path_text((*self.path, *node.attrs["path"]))

    def _param(self, node: Node) -> list[Tensor]:
        type_ = self.type(node.outputs[0].type)
        # Nodes are named after the block whose parameters were read last.
        self.graph.scope = self._name(node).rpartition(".")[0]
        return [Tensor(type_.shape, type_.dtype, self.graph.parameter(self._name(node)))]

    def _read(self, node: Node) -> list[Tensor]:
        return [self.states.read(self._name(node))]

    def _assign(self, node: Node) -> list[Tensor]:
        self.states.assign(self._name(node), self.operand(node.inputs[0]))
        return []

    def _update(self, node: Node) -> list[Tensor]:
        value, pos = map(self.operand, node.inputs)
        axes = {"axis": node.attrs["axis"], "batch_axis": node.attrs["batch_axis"]}
        return [self.states.update(self._name(node), value, pos, **axes)]

    def _call(self, node: Node) -> list[Tensor]:
        symbols = {n: self.attribute(d) for n, d in node.attrs["symbols"].items()}
        callee = self.inner(node.attrs["function"], (*self.path, *node.attrs["path"]), symbols)
        return callee.run([self.operand(x) for x in node.inputs])

    def _while_loop(self, node: Node) -> list[Tensor]:
        """Values that the body hands on as they are, are read from outside; states that it writes are carried."""
        cond, body = node.attrs["cond"], node.attrs["body"]
        path = node.attrs.get("path", self.path)
        init: list[Tensor] = [self.operand(x) for x in node.inputs]
        moving = [r is not a for r, a in zip(body.results, body.arguments, strict=True)]
        written = [path_text((*path, *p)) for p in sorted(body.writes, key=str)]

        def region(function: Function, carry: Sequence[Tensor]) -> list[Tensor]:
            return self.inner(function, path, self.given | _bound(function, init)).run(carry)

        (go,) = region(cond, init)
        whole = self._shortened(cond, body, path, init)
        start = [x for x, m in zip(init, moving, strict=True) if m] + self.states.carry(written)
        inside = self.graph.begin(start)
        count = sum(moving)
        self.states.set(written, inside[count:])
        for held in (x for path, x in zip(written, inside[count:], strict=True) if path in whole):
            self.dims.bind(held)
        after = region(body, _merged(init, inside[:count], moving))
        (again,) = region(cond, after)
        carry = [x for x, m in zip(after, moving, strict=True) if m] + self.states.carry(written)
        made = self.graph.end(again.value, carry)
        most = self.graph.constant(node.attrs["max_trips"], "i64")
        values = self.graph.loop(made, most, go.value, start)
        results = [Tensor(t.shape, t.dtype, v) for t, v in zip(start, values, strict=True)]
        self.states.set(written, results[count:])
        self.states.restore(whole)
        return _merged(init, results[:count], moving)

    def _shortened(
        self, cond: Function, body: Function, path: Path, init: Sequence[Tensor]
    ) -> dict[str, Tensor]:
        """Let a loop carry some states in part, where runtimes are known to gain by it; what they were in whole."""
        if not self.graph.contrib or self.graph.opset < 24:
            return {}
        at, axes = growing(cond, body, path)
        return self.states.shorten({p: (axis, init[at]) for p, axis in axes.items()})


def _bound(function: Function, arguments: Sequence[Tensor]) -> dict[str, Dim]:
    """The bare symbols of a function's arguments, from what it is given."""
    return {
        name: dim
        for value, tensor in zip(function.arguments, arguments, strict=True)
        for pattern, dim in zip(value.type.shape, tensor.shape, strict=True)
        if (name := pattern.as_symbol()) is not None
    }


def _merged(init: Sequence[Tensor], moved: Sequence[Tensor], moving: Sequence[bool]) -> list[Tensor]:
    """A carry, in which what does not move is as it was."""
    rest = iter(moved)
    return [next(rest) if m else x for x, m in zip(init, moving, strict=True)]


_HANDLERS: dict[str, Callable[[_Frame, Node], list[Tensor]]] = {
    "param": _Frame._param,
    "read": _Frame._read,
    "assign": _Frame._assign,
    "update": _Frame._update,
    "call": _Frame._call,
    "while_loop": _Frame._while_loop,
}
