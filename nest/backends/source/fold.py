"""Folding the unrolled iterations over a block array back into the loop that its author wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, LoopMark, Node, Operand, Path, Value

__all__ = ["Carry", "Item", "Loop", "fold", "loop_path"]

_ELEMENT = "*"


@dataclass
class Carry:
    """A variable of a loop: what it starts as, and what an iteration leaves in it.

    `inner` stands for it inside the body.
    """

    init: Value
    inner: Value
    result: Value


@dataclass
class Loop:
    """A loop over a block array: the nodes of one iteration, with `*` for the element's index in paths."""

    mark: LoopMark
    body: list[Item]
    carries: list[Carry]
    nodes: list[Node] = field(default_factory=list)


Item = Node | Loop


def loop_path(path: Path, mark: LoopMark) -> Path:
    """A path with the loop's element in it written as `*`."""
    depth = len(mark.path)
    if len(path) > depth and path[:depth] == mark.path and path[depth] == mark.index:
        return (*path[:depth], _ELEMENT, *path[depth + 1 :])
    return path


class _Renamer:
    """What stands for a value after folding."""

    def __init__(self) -> None:
        self.of: dict[int, Value] = {}

    def __call__(self, x: Operand | None) -> Operand | None:
        while isinstance(x, Value) and id(x) in self.of:
            x = self.of[id(x)]
        return x


MethodName = Callable[[Function], str]


def fold(function: Function, method_name: MethodName) -> tuple[list[Item], list[Value]]:
    """The nodes of a function with loops folded, parameters left out, and the function's results.

    Two iterations are alike when they run the same ops and call methods of the same signature on the element;
    the blocks themselves may differ. Iterations that are not alike stay unrolled.
    """
    renamer = _Renamer()
    nodes = [n for n in function.nodes if n.op != "param"]
    used_after = {id(v) for v in function.results}
    items = _fold(nodes, 0, renamer, used_after, method_name)
    results = [v for v in map(renamer, function.results) if isinstance(v, Value)]
    return _renamed(items, renamer), results


def _fold(
    nodes: list[Node], depth: int, renamer: _Renamer, results: set[int], method_name: MethodName
) -> list[Item]:
    items: list[Item] = []
    position = 0
    while position < len(nodes):
        node = nodes[position]
        if len(node.loops) <= depth:
            items.append(node)
            position += 1
            continue
        stop = position
        while (
            stop < len(nodes)
            and len(nodes[stop].loops) > depth
            and (nodes[stop].loops[depth].loop == node.loops[depth].loop)
        ):
            stop += 1
        span = nodes[position:stop]
        outside = {id(x) for n in nodes[:position] + nodes[stop:] for x in n.inputs if isinstance(x, Value)}
        loop = _loop(span, depth, renamer, results | outside, method_name)
        items += [loop] if loop is not None else span
        position = stop
    return items


def _loop(
    span: list[Node], depth: int, renamer: _Renamer, used_after: set[int], method_name: MethodName
) -> Loop | None:
    iterations: dict[int, list[Node]] = {}
    for node in span:
        iterations.setdefault(node.loops[depth].index, []).append(node)
    groups = list(iterations.values())
    if len(groups) < 2 or len({len(g) for g in groups}) != 1:
        return None
    if len(groups) != span[0].loops[depth].count or any(len(n.loops) > depth + 1 for n in span):
        return None
    made = [{id(v): (p, v.index) for p, n in enumerate(g) for v in n.outputs} for g in groups]
    early = {i for outputs in made[:-1] for i in outputs}
    if early & used_after:
        return None
    match = _Match(depth, made)
    for same in zip(*groups, strict=True):
        if not _alike(same, depth, method_name) or not match.inputs(same):
            return None
    return _make(groups, depth, match, renamer)


def _make(groups: list[list[Node]], depth: int, match: _Match, renamer: _Renamer) -> Loop:
    template, last = groups[0], groups[-1]
    for kept, gone in zip(template, last, strict=True):
        for a, b in zip(kept.outputs, gone.outputs, strict=True):
            renamer.of[id(b)] = a
    body: list[Item] = []
    swapped = {**match.elements, **{id(init): inner for init, inner in match.carried.values()}}
    for node in template:
        attrs = {n: loop_path(v, node.loops[depth]) if n == "path" else v for n, v in node.attrs.items()}
        inputs = tuple(swapped.get(id(x), x) if isinstance(x, Value) else x for x in node.inputs)
        body.append(_copy(node, inputs, attrs))
    carries = [Carry(init, inner, template[p].outputs[o]) for (p, o), (init, inner) in match.carried.items()]
    return Loop(template[0].loops[depth], body, carries, template)


def _copy(node: Node, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Node:
    copy = Node.__new__(Node)
    copy.op, copy.inputs, copy.attrs, copy.outputs = node.op, inputs, attrs, node.outputs
    copy.location, copy.loops = node.location, node.loops
    return copy


def _alike(nodes: tuple[Node, ...], depth: int, method_name: MethodName) -> bool:
    first = nodes[0]
    keys = [_attrs_key(n, depth, method_name) for n in nodes]
    return all(
        n.op == first.op
        and k == keys[0]
        and len(n.inputs) == len(first.inputs)
        and list(map(str, (v.type for v in n.outputs))) == list(map(str, (v.type for v in first.outputs)))
        for n, k in zip(nodes, keys, strict=True)
    )


def _attrs_key(node: Node, depth: int, method_name: MethodName) -> tuple[Any, ...]:
    return tuple(
        (n, _attr_key(v, node.loops[depth] if n == "path" else None, method_name))
        for n, v in node.attrs.items()
        if n not in ("symbols", "dtypes")  # they follow from the types, which are compared
    )


def _attr_key(value: Any, mark: LoopMark | None, method_name: MethodName) -> Any:
    if mark is not None:
        return loop_path(value, mark)
    if isinstance(value, Function):
        return (method_name(value), str(value.signature), value.uses_state)
    if isinstance(value, Dim | DType):
        return str(value)
    return (
        tuple(_attr_key(v, None, method_name) for v in value)
        if isinstance(value, tuple)
        else (type(value), value)
    )


class _Match:
    """Whether what flows into the iterations is alike; collects what is carried from one to the next."""

    def __init__(self, depth: int, made: list[dict[int, tuple[int, int]]]) -> None:
        self.depth = depth
        self.made = made
        # (node, output) of an iteration that the next one takes -> what the first one takes, and its stand-in.
        self.carried: dict[tuple[int, int], tuple[Value, Value]] = {}
        self.invariant: set[int] = set()
        self.elements: dict[int, Value] = {}

    def inputs(self, nodes: tuple[Node, ...]) -> bool:
        marks = [n.loops[self.depth] for n in nodes]
        return all(self._input([n.inputs[i] for n in nodes], marks) for i in range(len(nodes[0].inputs)))

    def _input(self, values: list[Operand | None], marks: list[LoopMark]) -> bool:
        tensors = [v for v in values if isinstance(v, Value)]
        if len(tensors) != len(values):
            return all(type(v) is type(values[0]) and str(v) == str(values[0]) for v in values)
        own = [outputs.get(id(v)) for outputs, v in zip(self.made, tensors, strict=True)]
        if own[0] is not None:
            return all(place == own[0] for place in own)
        if all(v is tensors[0] for v in tensors):
            self.invariant.add(id(tensors[0]))
            return not any(init is tensors[0] for init, _ in self.carried.values())
        return self._element(tensors, marks) or self._carry(tensors)

    def _element(self, tensors: list[Value], marks: list[LoopMark]) -> bool:
        """A parameter of the loop's element."""
        paths = {
            loop_path(p, m) if (p := _param_path(v)) else None for v, m in zip(tensors, marks, strict=True)
        }
        if len(paths) != 1 or None in paths:
            return False
        node = Node("param", (), {"path": paths.pop()}, (tensors[0].type,), None)
        self.elements[id(tensors[0])] = node.outputs[0]
        return True

    def _carry(self, tensors: list[Value]) -> bool:
        before = {outputs.get(id(v)) for outputs, v in zip(self.made, tensors[1:], strict=False)}
        place = before.pop()
        if before or place is None:
            return False
        known = self.carried.get(place)
        if known is not None:
            return known[0] is tensors[0]
        taken = any(init is tensors[0] for init, _ in self.carried.values())
        if taken or id(tensors[0]) in self.invariant:
            return False
        self.carried[place] = (tensors[0], Value(tensors[0].type, None))
        return True


def _param_path(value: Value) -> Path | None:
    if value.node is not None and value.node.op == "param":
        path: Path = value.node.attrs["path"]
        return path
    return None


def _renamed(items: Iterable[Item], renamer: _Renamer) -> list[Item]:
    done: list[Item] = []
    for item in items:
        if isinstance(item, Node):
            done.append(_copy(item, tuple(renamer(x) for x in item.inputs), item.attrs))
            continue
        item.body = _renamed(item.body, renamer)
        for carry in item.carries:
            init = renamer(carry.init)
            if isinstance(init, Value):
                carry.init = init
        done.append(item)
    return done
