"""A body of the program as a graph to draw: boxes, and wires that carry a value from one box to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nest.catalog.diagram.folding import Item, Repeat, fold
from nest.catalog.diagram.naming import (
    Slice,
    Text,
    call_class,
    call_name,
    element_slice,
    kind_of,
    note_of,
    repeat_name,
    source_text,
    state_lines,
    title_of,
)
from nest.ir.program import Function, Node, Value
from nest.ir.types import TensorType

__all__ = ["Box", "Graph", "Wire", "function_graph"]

SOURCES = frozenset({"param", "constant", "full", "iota"})
"""Ops that take no tensor: written into the boxes that use them."""


@dataclass
class Wire:
    """A value: from output `port` of a box, or an argument where `box` is None, to inputs of boxes."""

    type: TensorType
    name: str | None = None
    box: int | None = None
    port: int = 0
    to: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Box:
    """Something that is done. `arguments` says which argument of the inside each input is.

    `inside` makes the graph that the box opens to: of a function that is called, in the scope of `call`, or of a
    part of this body, in the same scope.
    """

    kind: str
    name: str
    note: Text | None = None
    class_name: str | None = None
    class_module: str | None = None
    lines: list[tuple[str, Text]] = field(default_factory=list)
    title: Text | None = None
    times: int = 1
    arguments: list[int] = field(default_factory=list)
    outputs: int = 1
    call: Node | None = None
    inside: Callable[[], Graph] | None = None


@dataclass
class Graph:
    """Boxes in the order of the program, then one `result` for each result. Wires of arguments come first."""

    boxes: list[Box]
    wires: list[Wire]
    arguments: int
    function: Function
    nodes: list[Node] = field(default_factory=list)


def function_graph(function: Function) -> Graph:
    """The graph of a whole function."""
    builder = _Builder(function, None)
    names = [(v, v.name) for v in function.arguments]
    return builder.build(fold(function.nodes, function.results), names, list(function.results))


class _Builder:
    def __init__(self, function: Function, element: Slice | None) -> None:
        self.function = function
        self.element = element
        self.boxes: list[Box] = []
        self.wires: list[Wire] = []
        self.of: dict[int, Wire] = {}
        self.nodes: list[Node] = []

    def build(
        self,
        items: Sequence[Item],
        arguments: Sequence[tuple[Value, str | None]],
        results: Sequence[Value],
    ) -> Graph:
        for value, name in arguments:
            self._wire(value, name)
        # What a loop starts from is not what each run takes, and a result has no box to be written into.
        starts = [first for item in items if isinstance(item, Repeat) for first, _ in item.carries]
        drawn = {id(v) for v in [*results, *starts]}
        for item in items:
            if isinstance(item, Repeat):
                self._repeat(item)
            elif item.op not in SOURCES or any(id(v) in drawn for v in item.outputs):
                self._node(item, self.element)
            else:
                self.nodes.append(item)
        for value in results:
            self.boxes.append(Box("result", ""))
            self._connect(value, 0, None)
        return Graph(self.boxes, self.wires, len(arguments), self.function, self.nodes)

    def _node(self, node: Node, element: Slice | None) -> Box:
        box = Box(kind_of(node), node.op, note_of(node, element), title=title_of(node, element))
        self.boxes.append(box)
        self.nodes.append(node)
        if node.op == "call":
            callee: Function = node.attrs["function"]
            box.name = call_name(node, element)
            box.class_name, box.class_module = call_class(node)
            box.call, box.inside = node, lambda: function_graph(callee)
            box.lines += state_lines(callee)
        elif node.op == "while_loop":
            box.inside = lambda: _while_graph(self.function, node)
        for position, x in enumerate(node.inputs):
            if isinstance(x, Value):
                self._connect(x, position, node)
        if box.kind == "plumbing" and box.lines:
            box.kind = "op"  # a small box has no room for what it takes
        self._made(node.outputs)
        return box

    def _repeat(self, repeat: Repeat) -> None:
        """One node repeated is that node; more are a box of their own."""
        element = element_slice(repeat)
        if len(repeat.body) == 1:
            self._node(repeat.body[0], element).times = repeat.count
            for own, last in repeat.left:
                self.of[id(last)] = self.of[id(own)]
            return
        name, note = repeat_name(element)
        box = Box("repeat", name, note, times=repeat.count)
        taken = _taken(repeat)
        box.inside = lambda: _repeat_graph(self.function, repeat, taken, element)
        self.boxes.append(box)
        for position, value in enumerate(taken):
            self._connect(value, position, None)
        self._made([last for _, last in repeat.left])

    def _made(self, outputs: Sequence[Value]) -> None:
        self.boxes[-1].outputs = len(outputs)
        for port, value in enumerate(outputs):
            wire = self._wire(value, None)
            wire.box, wire.port = len(self.boxes) - 1, port

    def _wire(self, value: Value, name: str | None) -> Wire:
        wire = Wire(value.type, name)
        self.wires.append(wire)
        self.of[id(value)] = wire
        return wire

    def _connect(self, value: Value, position: int, node: Node | None) -> None:
        box = self.boxes[-1]
        wire = self.of.get(id(value))
        if wire is not None:
            wire.to.append((len(self.boxes) - 1, len(box.arguments)))
            box.arguments.append(position)
        else:
            box.lines.append(source_text(value, position, node, self.element))


def _taken(repeat: Repeat) -> list[Value]:
    """What the body takes from outside. Parameters and constants are left out: they are written where they are used."""
    own = {id(v) for n in repeat.body for v in n.outputs}
    starts = {id(first) for first, _ in repeat.carries}
    found: dict[int, Value] = {}
    for x in (x for node in repeat.body for x in node.inputs):
        if isinstance(x, Value) and id(x) not in own:
            source = x.node is not None and x.node.op in SOURCES and id(x) not in starts
            if not source:
                found[id(x)] = x
    return list(found.values())


def _repeat_graph(function: Function, repeat: Repeat, taken: list[Value], element: Slice) -> Graph:
    builder = _Builder(function, element)
    results = [own for own, _ in repeat.left]
    return builder.build(fold(repeat.body, results, repeat.depth + 1), [(v, v.name) for v in taken], results)


def _while_graph(function: Function, node: Node) -> Graph:
    """The condition and the body of a loop, both over what it carries."""
    cond, body = node.attrs["cond"], node.attrs["body"]
    graph = Graph([], [Wire(v.type, v.name) for v in body.arguments], len(body.arguments), function)
    for role, callee in (("while", cond), ("body", body)):
        graph.boxes.append(
            Box("call", callee.name, (role,), inside=lambda callee=callee: function_graph(callee))  # type: ignore[misc]
        )
        box = graph.boxes[-1]
        box.outputs, box.arguments = len(callee.results), list(range(len(callee.arguments)))
        for position in box.arguments:
            graph.wires[position].to.append((len(graph.boxes) - 1, position))
        graph.wires += [
            Wire(v.type, None, len(graph.boxes) - 1, port) for port, v in enumerate(callee.results)
        ]
    for wire in graph.wires[-len(body.results) :]:
        graph.boxes.append(Box("result", "", arguments=[0]))
        wire.to.append((len(graph.boxes) - 1, 0))
    return graph
