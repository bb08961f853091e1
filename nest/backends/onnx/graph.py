"""Building an ONNX graph: nodes made once for each distinct computation, constants, parameters, inputs, outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from nest.backends.onnx.dtypes import numpy_dtype
from nest.backends.onnx.element_types import ONNX
from nest.ir.dim import Dim

__all__ = ["CONTRIB", "OPSET", "OPSETS", "Graph", "Tensor", "Type", "transposed"]

OPSET = 24
"""Attention with `nonpad_kv_seqlen`, TensorScatter, RotaryEmbedding and RMSNormalization are in it."""

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own ops."""

OPSETS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
"""The operator sets that graphs can be made in, with the version of the format that came with each. What one of them
lacks, rules write over what it has."""

_OF_BYTES = frozenset({"MatMulInteger", "MatMulIntegerToFloat", "MatMulNBits"})


@dataclass(frozen=True)
class Type:
    """A shape in the entry's symbols, and an element type."""

    shape: tuple[Dim, ...]
    dtype: str


@dataclass(frozen=True)
class Tensor(Type):
    """A value of the graph with its type."""

    value: ir.Value

    @property
    def rank(self) -> int:
        return len(self.shape)


Operand = Tensor | ir.Value | None


class Graph:
    """A graph under construction.

    An op applied twice to the same values with the same attributes is one node: masks, positions and sizes that
    every layer computes again are computed once. In the body of a loop, a node that needs nothing of an iteration is
    made outside of it.

    Args:
        parameter: gives the stored tensor of a parameter, by definition path.
        opset: the operator set, one of `OPSETS`.
        contrib: ONNX Runtime's own ops may be used where they are faster.
    """

    def __init__(
        self, parameter: Callable[[str], ir.ExternalTensor], opset: int = OPSET, *, contrib: bool = False
    ) -> None:
        self.opset = opset
        self.contrib = contrib
        self._parameter = parameter
        # Nodes of the graph, and of the bodies of loops that are being built inside it.
        self._scopes: list[list[ir.Node]] = [[]]
        self._depth: dict[int, int] = {}
        self._inputs: list[ir.Value] = []
        self._outputs: list[ir.Value] = []
        self._initializers: dict[str, ir.Value] = {}
        self._known: dict[tuple[Any, ...], tuple[ir.Value, ...]] = {}
        self._names: set[str] = set()
        self._bodies: list[list[ir.Value]] = []
        self._floor = 0
        self.scope = ""

    # -- nodes ---------------------------------------------------------------------------------------------

    def op(self, op_type: str, *inputs: Operand, domain: str = "", **attributes: Any) -> ir.Value:
        """The result of an op with one."""
        return self.ops(op_type, 1, *inputs, domain=domain, **attributes)[0]

    def ops(
        self, op_type: str, count: int, *inputs: Operand, domain: str = "", **attributes: Any
    ) -> tuple[ir.Value, ...]:
        """The `count` results of an op; attributes that are None are left out."""
        values = [x.value if isinstance(x, Tensor) else x for x in inputs]
        while values and values[-1] is None:
            values.pop()
        given = {n: _plain(v) for n, v in attributes.items() if v is not None}
        key = (op_type, tuple(map(id, values)), tuple(sorted(given.items())))
        known = self._known.get(key)
        if known is None:
            name = self.fresh(f"{self.scope}/{op_type}" if self.scope else op_type)
            node = ir.node(op_type, values, given, domain=domain, num_outputs=count, name=name)
            for position, output in enumerate(node.outputs):
                output.name = name if count == 1 else f"{name}.{position}"
            self._append(node)
            known = self._known[key] = tuple(node.outputs)
        return known

    def _append(self, node: ir.Node, depth: int | None = None) -> None:
        """Add a node to the outermost scope that has all it needs."""
        if depth is None:
            depth = max((self._depth.get(id(v), 0) for v in node.inputs), default=0)
            depth = max(depth, self._floor)
        self._scopes[depth].append(node)
        self._depth.update((id(v), depth) for v in node.outputs)

    def transpose(self, x: Operand, perm: Sequence[int]) -> ir.Value:
        """Axes in another order; what turns them back is what was there before."""
        value = x.value if isinstance(x, Tensor) else x
        before = transposed(value)
        if before is not None:
            source, first = before
            perm, value = [first[axis] for axis in perm], source
            if perm == sorted(perm):
                return source
        return self.op("Transpose", value, perm=tuple(perm))

    def cast(self, x: Operand, dtype: str) -> ir.Value:
        """A value in another element type; a `Tensor` that has it already is taken as it is."""
        if isinstance(x, Tensor) and x.dtype == dtype:
            return x.value
        return self.op("Cast", x, to=int(ONNX[dtype]))

    # -- what nodes compute from -----------------------------------------------------------------------------

    def constant(self, values: Any, dtype: str) -> ir.Value:
        """A small tensor of numbers, stored in the graph."""
        array = np.asarray(values, numpy_dtype(dtype))
        key = ("constant", dtype, array.shape, array.tobytes())
        known = self._known.get(key)
        if known is None:
            name = self.fresh("constant")
            tensor = ir.tensor(array, ONNX[dtype], name)
            known = self._known[key] = (self._initializer(name, tensor),)
        return known[0]

    def integers(self, *values: int) -> ir.Value:
        """Int64 [n], the form in which ONNX takes sizes and axes."""
        return self.constant(values, "i64")

    def parameter(self, path: str) -> ir.Value:
        """The parameter at a definition path, stored outside the graph."""
        key = ("parameter", path)
        known = self._known.get(key)
        if known is None:
            name = self.fresh(path)
            stored = self._parameter(path)
            stored.name = name
            known = self._known[key] = (self._initializer(name, stored),)
        return known[0]

    def _initializer(self, name: str, tensor: ir.TensorProtocol) -> ir.Value:
        value = ir.val(name, tensor.dtype, tensor.shape.numpy(), const_value=tensor)
        self._initializers[name] = value
        return value

    def input(self, name: str, type_: Type) -> Tensor:
        """Add an input; its axes are named as the entry's signature spells them."""
        value = ir.val(self.fresh(name), ONNX[type_.dtype], _axes(type_))
        self._inputs.append(value)
        return Tensor(type_.shape, type_.dtype, value)

    def output(self, name: str, x: Tensor) -> ir.Value:
        """Add an output, of its own even where its value is also an input, another output or stored."""
        value = x.value
        if value.producer() is None or value in self._outputs:
            value = self._copy(value, name)
        value.name = self.fresh(name)
        value.type = ir.TensorType(ONNX[x.dtype])
        value.shape = ir.Shape(_axes(x))
        self._outputs.append(value)
        return value

    def _copy(self, value: ir.Value, name: str) -> ir.Value:
        """The value as another one; not through `op`, in which two copies of one value would be the same."""
        node = ir.node("Identity", [value], name=self.fresh(f"{name}/Identity"))
        self._append(node, len(self._scopes) - 1)
        node.outputs[0].name = node.name
        return node.outputs[0]

    # -- loops -------------------------------------------------------------------------------------------------

    def is_outside(self, x: Tensor) -> bool:
        """Whether a body is being built, and a value is none of its own."""
        return self._depth.get(id(x.value), 0) < len(self._scopes) - 1

    def begin(self, types: Sequence[Type]) -> list[Tensor]:
        """Start the body of a loop that carries values of these types; the values inside it."""
        self._scopes.append([])
        fixed = [("trip", Type((), "i64")), ("go", Type((), "bool"))]
        carried = [
            Tensor(t.shape, t.dtype, ir.val(self.fresh(f"loop.{n}"), ONNX[t.dtype], _axes(t)))
            for n, t in [*fixed, *(("carry", t) for t in types)]
        ]
        self._depth.update((id(t.value), len(self._scopes) - 1) for t in carried)
        self._bodies.append([t.value for t in carried])
        return carried[2:]

    def end(self, go: ir.Value, results: Sequence[Tensor]) -> ir.Graph:
        """Finish the body of a loop: whether to go on, and the next carry."""
        depth = len(self._scopes) - 1
        outputs: list[ir.Value] = []
        for x in [Tensor((), "bool", go), *results]:
            inside = self._depth.get(id(x.value), 0) == depth and x.value.producer() is not None
            value = x.value if inside and x.value not in outputs else self._copy(x.value, "loop")
            value.type, value.shape = ir.TensorType(ONNX[x.dtype]), ir.Shape(_axes(x))
            outputs.append(value)
        nodes = self._popped(outputs)
        own = self._owned(nodes)
        return ir.Graph(self._bodies.pop(), outputs, nodes=nodes, initializers=own, name=self.fresh("body"))

    def _owned(self, nodes: Sequence[ir.Node]) -> list[ir.Value]:
        """The weights of few bits that nodes of a body multiply by, as the body's own: the runtime packs no others."""
        owned: list[ir.Value] = []
        for node in (n for n in nodes if n.op_type in _OF_BYTES):
            value = node.inputs[1]
            if value is not None and value.const_value is not None:
                name = self.fresh(str(value.name))
                own = ir.val(name, value.dtype, value.shape, const_value=value.const_value)
                node.replace_input_with(1, own)
                owned.append(own)
        return owned

    def loop(
        self, body: ir.Graph, most: ir.Value, go: ir.Value, carry: Sequence[Tensor]
    ) -> tuple[ir.Value, ...]:
        """Repeat a body while it says so, `most` times at most; the last carry."""
        inputs = [most, go, *(t.value for t in carry)]
        name = self.fresh("Loop")
        node = ir.node("Loop", inputs, {"body": body}, num_outputs=len(carry), name=name)
        for position, value in enumerate(node.outputs):
            value.name = f"{name}.{position}"
        self._append(node, len(self._scopes) - 1)
        return tuple(node.outputs)

    def branch(
        self,
        condition: ir.Value,
        then: Callable[[], Sequence[Tensor]],
        otherwise: Callable[[], Sequence[Tensor]],
    ) -> tuple[ir.Value, ...]:
        """What one of two gives, by a bool; what each of them makes is computed only where it is chosen."""
        graphs = [self._inside(make) for make in (then, otherwise)]
        name = self.fresh("If")
        branches = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
        node = ir.node("If", [condition], branches, num_outputs=len(graphs[0].outputs), name=name)
        for position, value in enumerate(node.outputs):
            value.name = f"{name}.{position}"
        self._append(node, len(self._scopes) - 1)
        return tuple(node.outputs)

    def _inside(self, make: Callable[[], Sequence[Tensor]]) -> ir.Graph:
        self._scopes.append([])
        self._floor, floor = len(self._scopes) - 1, self._floor
        outputs: list[ir.Value] = []
        for x in make():
            value = self._copy(x.value, "branch")
            value.type, value.shape = ir.TensorType(ONNX[x.dtype]), ir.Shape(_axes(x))
            outputs.append(value)
        self._floor = floor
        return ir.Graph([], outputs, nodes=self._popped(outputs), name=self.fresh("branch"))

    def _popped(self, outputs: Sequence[ir.Value]) -> list[ir.Node]:
        """The nodes of the innermost scope that its outputs need; nothing outside knows them."""
        depth, needed = len(self._scopes) - 1, _needed(outputs)
        nodes = [n for n in self._scopes.pop() if id(n) in needed]
        gone = {i for i, d in self._depth.items() if d == depth}
        self._depth = {i: d for i, d in self._depth.items() if d < depth}
        self._known = {k: v for k, v in self._known.items() if not any(id(x) in gone for x in v)}
        return nodes

    def fresh(self, name: str) -> str:
        """A name that nothing else in the graph has."""
        chosen, count = name, 1
        while chosen in self._names:
            count += 1
            chosen = f"{name}_{count}"
        self._names.add(chosen)
        return chosen

    # -- the whole ---------------------------------------------------------------------------------------------

    def consumers(self, value: ir.Value) -> list[tuple[ir.Node, int]]:
        """The nodes that read a value, and as which input."""
        return [(use.node, use.idx) for use in value.uses()]

    def model(self, name: str, doc: str | None) -> ir.Model:
        """The finished model, without nodes that no output needs."""
        needed = _needed(self._outputs)
        nodes = [n for n in self._scopes[0] if id(n) in needed]
        read = {id(v) for n in nodes for v in _reads(n)}
        graph = ir.Graph(
            self._inputs,
            self._outputs,
            nodes=nodes,
            initializers=[v for v in self._initializers.values() if id(v) in read],
            opset_imports={"": self.opset} | ({CONTRIB: 1} if self.contrib else {}),
            name=name,
            doc_string=doc,
        )
        return ir.Model(graph, ir_version=OPSETS[self.opset], producer_name="nest")


def transposed(value: ir.Value | None) -> tuple[ir.Value, tuple[int, ...]] | None:
    """What a value is a transposition of, and how its axes are ordered; None where it is none."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "Transpose" or node.inputs[0] is None:
        return None
    return node.inputs[0], tuple(node.attributes["perm"].as_ints())


def _plain(value: Any) -> Any:
    """An attribute as what onnx-ir takes and a dict can be keyed by."""
    if isinstance(value, bool):
        return int(value)
    return tuple(value) if isinstance(value, list | tuple) else value


def _axes(type_: Type) -> list[int | str]:
    """Axes for people and for the runtime: sizes where they are known, else the dim's text."""
    return [d.value if d.value is not None else str(d) for d in type_.shape]


def _needed(outputs: Sequence[ir.Value]) -> set[int]:
    found: set[int] = set()
    waiting = [v.producer() for v in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in found:
            continue
        found.add(id(node))
        waiting += [v.producer() for v in _reads(node)]
    return found


def _reads(node: ir.Node) -> Iterator[ir.Value]:
    """What a node reads, itself and in its bodies."""
    yield from (v for v in node.inputs if v is not None)
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from attribute.as_graph().outputs
            for inner in attribute.as_graph():
                yield from _reads(inner)
