"""Which values are printed inside the one expression that uses them."""

from __future__ import annotations

import ast
from types import CodeType

from nest.backends.source.fold import Item, Loop
from nest.backends.source.names import Names, statement_of
from nest.backends.source.uses import EFFECTS
from nest.ir.location import Span, statements
from nest.ir.program import Node, Value

__all__ = ["Nesting"]

_DEEPEST = 24  # nested expressions; a longer chain of operators gets a variable


class Nesting:
    """The choice for the nodes of one function: those of one statement of the author's that are used once.

    Args:
        items: the nodes.
        uses: which nodes use each value.
        names: the variables that there are.
    """

    def __init__(self, items: list[Item], uses: dict[int, list[Node | None]], names: Names) -> None:
        self._uses = uses
        self._names = names
        self._depths: dict[int, int] = {}
        self._order: dict[int, int] = {}
        self._effects: list[int] = []
        self._number(items)

    def _number(self, items: list[Item], count: int = 0) -> int:
        """Number the nodes in the order in which they are printed, and note those that write."""
        for item in items:
            if isinstance(item, Loop):
                count = self._number(item.body, count)
                continue
            count += 1
            self._order[id(item)] = count
            self._order.update((id(v), count) for v in item.outputs)
            if item.op in EFFECTS or (item.op == "call" and item.attrs["function"].writes):
                self._effects.append(count)
        return count

    def nests(self, node: Node) -> bool:
        """Whether a node is printed inside the one expression that uses it."""
        if node.op in EFFECTS or len(node.outputs) != 1 or id(node.outputs[0]) in self._names.of:
            return False
        if node.op == "call" and node.attrs["function"].writes:
            return False
        uses = self._uses.get(id(node.outputs[0]), [])
        if len(uses) != 1:
            return False
        if self._effect_between(node, uses[0]) or self._depth(node) > _DEEPEST:
            return False
        here = statement_of(node.location)
        if uses[0] is None:
            return here is not None and node.location is not None and _is_return(node.location.code, here)
        return here == statement_of(uses[0].location) and node.loops == uses[0].loops

    def _depth(self, node: Node) -> int:
        """How deep the expression of a node of one result is, with what is nested in it."""
        key = id(node.outputs[0])
        if key not in self._depths:
            # By value: folding makes other nodes of the same values.
            inner = (self._depths.get(id(x), 0) for x in node.inputs if isinstance(x, Value))
            self._depths[key] = 1 + max((d for d in inner if d <= _DEEPEST), default=0)
        return self._depths[key]

    def _effect_between(self, node: Node, use: Node | None) -> bool:
        """Whether a state is written after a node and before its use: nested, it would see what was written."""
        start = self._order[id(node.outputs[0])]
        stop = self._order.get(id(use), 1 << 30) if use is not None else 1 << 30
        return any(start < at < stop for at in self._effects)


def _is_return(code: CodeType, span: Span) -> bool:
    return any(s == span and isinstance(n, ast.Return) for s, n in statements(code))
