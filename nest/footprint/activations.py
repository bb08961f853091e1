"""The most that the values of one call take at one time, by their lives in the plan's program.

What is counted: each node's results, from the node to their last use, and the call's arguments and results. What only
looks at another value (reshape, permute, slice, broadcast) takes nothing and keeps that value alive. What is left
out: a kernel's own working space, copies that a framework makes of what is not contiguous, and what its allocator
keeps. A framework that fuses ops needs less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from nest.ir.dim import Dim
from nest.ir.dtype import bytes_per_element
from nest.ir.passes import inline
from nest.ir.program import Function, Program, Value
from nest.ir.types import TensorType

__all__ = ["Lives", "entry_symbols"]

_VIEWS = frozenset({"reshape", "permute", "slice", "broadcast_to"})
_ELSEWHERE = frozenset({"param", "read", "assign", "update"})
"""Ops whose results are weights or caches, which are counted apart."""


@dataclass
class Lives:
    """The lives of an entry's values, found once; their sizes are worked out for each batch and context.

    Attributes:
        program: the plan's.
        name: the entry's.
    """

    program: Program
    name: str
    _steps: list[tuple[list[TensorType], list[TensorType]]] = field(default_factory=list)
    _arguments: list[TensorType] = field(default_factory=list)

    def __post_init__(self) -> None:
        function = inline(self.program, self.name)
        self._arguments = [a.type for a in function.arguments]
        self._steps = _steps(function)

    def peak(self, symbols: Mapping[str, int]) -> int:
        """Bytes at the fullest moment.

        Args:
            symbols: the entry's and the session's.
        """
        known: dict[int, int] = {}

        def size(type_: TensorType) -> int:
            if id(type_) not in known:
                known[id(type_)] = _bytes(type_, symbols)
            return known[id(type_)]

        now = most = sum(map(size, self._arguments))
        for born, ended in self._steps:
            now += sum(map(size, born))
            most = max(most, now)
            now -= sum(map(size, ended))
        return most


def entry_symbols(function: Function, batch: int, context: int) -> dict[str, int] | None:
    """Values of an entry's own symbols: rows are the first axes of its arguments, the context is what a rule bounds.

    None where a symbol is neither, so that nothing says how large it is.
    """
    rows = {s for p in function.signature.parameters for d in p.type.shape[:1] if (s := d.as_symbol())}
    bounded = {
        s for rule in function.signature.rules if rule.op in ("<", "<=") and (s := rule.left.as_symbol())
    }
    found: dict[str, int] = {}
    for name in function.signature.generics:
        if name in rows:
            found[name] = batch
        elif name in bounded:
            found[name] = context
        else:
            return None
    return found


def _steps(function: Function) -> list[tuple[list[TensorType], list[TensorType]]]:
    """For each node, the types of what begins to live with it, and of what ends after it."""
    owner: dict[int, int | None] = {id(a): None for a in function.arguments}
    types: dict[int, TensorType] = {}
    last: dict[int, int] = {}
    born: list[list[TensorType]] = []
    for position, node in enumerate(function.nodes):
        inputs = [x for x in node.inputs if isinstance(x, Value)]
        for value in inputs:
            if (held := owner.get(id(value))) is not None:
                last[held] = position
        fresh: list[TensorType] = []
        for value in node.outputs:
            if node.op in _ELSEWHERE:
                owner[id(value)] = None
            elif node.op in _VIEWS:
                owner[id(value)] = owner[id(inputs[0])]
            else:
                owner[id(value)] = id(value)
                types[id(value)], last[id(value)] = value.type, position
                fresh.append(value.type)
        born.append(fresh)
    for value in function.results:
        if (held := owner.get(id(value))) is not None:
            last[held] = len(function.nodes)
    ended: list[list[TensorType]] = [[] for _ in range(len(function.nodes) + 1)]
    for held, position in last.items():
        ended[position].append(types[held])
    return list(zip(born, ended, strict=False))


def _bytes(type_: TensorType, symbols: Mapping[str, int]) -> int:
    sizes = (d.value if d.value is not None else Dim.of(d).evaluate(symbols) for d in type_.shape)
    return math.prod(sizes) * bytes_per_element(type_.dtype.value)
