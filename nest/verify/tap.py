"""A program whose entry also gives what flows between its blocks, for comparing runs from the inside.

Every backend reads programs, so a tapped one runs everywhere as the program itself does: the same blocks, calls and
order. Each function that is reached gives more results than its author wrote; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from nest.ir.location import Location
from nest.ir.program import ArrayUse, BlockDef, BlockUse, Function, Node, Path, Program, Value
from nest.ir.types import TensorType

__all__ = ["Tap", "tapped"]

# Views of caches, which a later call writes over.
_CACHES = frozenset({"read", "update"})

Inside = Callable[[Function], bool]


@dataclass(frozen=True)
class Tap:
    """One value of a run.

    Attributes:
        path: of the block whose own operations made it. function: the method of it that did.
        what: how to call it.
        op, location: the operation that made it, where it is not a call.
    """

    path: Path
    function: str
    what: str
    op: str | None = None
    location: Location | None = None

    def below(self, path: Path) -> Tap:
        """The same seen from a block that holds it."""
        return replace(self, path=(*path, *self.path))


def tapped(
    program: Program, entry: str, inside: Inside = lambda function: False
) -> tuple[Program, list[Tap]]:
    """A program with one entry, and what the further results of that are, in the order of the run.

    The entry is called as it was with `_tapped` after it, so that entries of the original may stand beside it.

    Args:
        inside: of which functions every operation's value is tapped, and not only what goes into and out of calls.
    """
    tapper = _Tapper(inside)
    function, taps = tapper.function(program.entries[entry])
    first = [
        Tap((), entry, "its result" if program.entries[entry].signature.single else f"result {i}")
        for i in range(len(program.entries[entry].results))
    ]
    function.name = f"{entry}_tapped"
    root = tapper.block(program.root)
    return Program(program.name, root, {function.name: function}, program.rules), [*taps, *first]


class _Tapper:
    """Copies of blocks and functions, each made once."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self._blocks: dict[int, BlockDef] = {}
        self._functions: dict[int, tuple[Function, list[Tap]]] = {}

    def block(self, block: BlockDef) -> BlockDef:
        known = self._blocks.get(block.key)
        if known is None:
            children: dict[str, BlockUse | ArrayUse] = {}
            for name, use in block.children.items():
                if isinstance(use, ArrayUse):
                    children[name] = replace(use, items=tuple(self._use(item) for item in use.items))
                else:
                    children[name] = self._use(use)
            known = self._blocks[block.key] = replace(block, children=children, functions={})
        return known

    def _use(self, use: BlockUse) -> BlockUse:
        return replace(use, block=self.block(use.block))

    def function(self, original: Function) -> tuple[Function, list[Tap]]:
        """The copy, whose results are the taps and then its own in their old order, first; and what the taps are."""
        known = self._functions.get(id(original))
        if known is None:
            known = self._functions[id(original)] = self._copied(original)
        return known

    def _copied(self, original: Function) -> tuple[Function, list[Tap]]:
        if not self.inside(original) and all(node.op != "call" for node in original.nodes):
            return (
                original,
                [],
            )  # backends may have a class of their own for such a block, such as a linear layer
        block = self.block(original.block)
        made = Function(original.name, block, original.signature, original.code, original.doc)
        made.reads, made.writes = set(original.reads), set(original.writes)
        body = _Body(self, original, made)
        for node in original.nodes:
            body.add(node)
        own = tuple(body.values[id(v)] for v in original.results)
        made.results = (*own, *body.tapped)
        if body.tapped:
            types = (*original.signature.results, *(v.type for v in body.tapped))
            made.signature = replace(original.signature, results=types, single=False)
        block.functions[original.name] = made
        return made, body.taps


class _Body:
    """One function while it is copied."""

    def __init__(self, tapper: _Tapper, original: Function, made: Function) -> None:
        self.tapper = tapper
        self.original = original
        self.made = made
        self.values = dict(zip(map(id, original.arguments), made.arguments, strict=True))
        self.tapped: list[Value] = []
        self.taps: list[Tap] = []
        # An argument is a result of whoever calls, and the results are what the caller taps.
        self._seen = {id(v) for v in made.arguments}
        self._own = {id(v) for v in original.results}
        self._inside = tapper.inside(original)

    def add(self, node: Node) -> None:
        if node.op == "call":
            self._call(node)
            return
        made = self._node(node, dict(node.attrs), tuple(v.type for v in node.outputs))
        self._remember(node, made)
        if self._inside and node.op not in _CACHES and node.op != "param":
            for value in node.outputs:
                self._tap(value, f"`{node.op}`", node)

    def _call(self, node: Node) -> None:
        callee, below = self.tapper.function(node.attrs["function"])
        target: Path = node.attrs["path"]
        for position, x in enumerate(node.inputs):
            if isinstance(x, Value):
                self._tap(x, f"argument {position} of {_called(node)}", x.node)
        symbols, dtypes = node.attrs["symbols"], node.attrs["dtypes"]
        extra = callee.signature.results[len(node.outputs) :]
        types = (*(v.type for v in node.outputs), *(t.substitute(symbols, dtypes) for t in extra))
        made = self._node(node, {**node.attrs, "function": callee}, types)
        self._remember(node, made)
        for tap, value in zip(below, made.outputs[len(node.outputs) :], strict=True):
            self.tapped.append(value)
            self.taps.append(tap.below(target))
        for value in node.outputs:
            self._tap(
                value, "its result", None, made_by=Tap(target, node.attrs["function"].name, "its result")
            )

    def _node(self, node: Node, attrs: dict[str, Any], types: tuple[TensorType, ...]) -> Node:
        inputs = tuple(self.values[id(x)] if isinstance(x, Value) else x for x in node.inputs)
        made = Node(node.op, inputs, attrs, types, node.location, node.loops)
        self.made.nodes.append(made)
        return made

    def _remember(self, node: Node, made: Node) -> None:
        self.values.update((id(old), new) for old, new in zip(node.outputs, made.outputs, strict=False))

    def _tap(self, value: Value, what: str, node: Node | None, made_by: Tap | None = None) -> None:
        """Tap a value of the original once, where it is a float that the entry may give away."""
        copy = self.values[id(value)]
        op = value.node.op if value.node else None
        if id(copy) in self._seen or value.type.dtype.kind != "float" or op in (*_CACHES, "param"):
            return
        self._seen.add(id(copy))
        self.tapped.append(copy)
        where = node.location if node and node.op != "call" else None
        self.taps.append(made_by or Tap((), self.original.name, what, op if where else None, where))


def _called(node: Node) -> str:
    from nest.ir.program import path_text

    return path_text((*node.attrs["path"], node.attrs["function"].name))
