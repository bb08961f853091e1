"""Statements: what is too long gets names first, comments and shapes stand beside what they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import CodeType

from nest.backends.source.comments import MethodComments
from nest.backends.source.dialect import Dialect
from nest.backends.source.expr import Expr, laid_out
from nest.backends.source.names import statement_of
from nest.backends.source.operands import OperandWriter
from nest.backends.source.shapes import shape_note
from nest.ir.program import Function, Node, Value

__all__ = ["SentenceWriter"]

_BASES = {
    "linear": "y", "einsum": "y", "conv": "y", "attention": "attended", "update": "cache", "softmax": "weights",
    "take": "picked",
}  # fmt: skip
_LEAST_SAVED = 12


class SentenceWriter(OperandWriter):
    """Lays the statements of a function out."""

    def __init__(self, function: Function, dialect: Dialect, method_name: Callable[[Function], str]) -> None:
        super().__init__(function, dialect, method_name)
        self._comments: dict[CodeType, MethodComments] = {}

    def _sentence(self, start: str, make: Callable[[], Expr], nodes: Sequence[Node], width: int) -> list[str]:
        """A statement with a comment of the shapes that it makes. What is too long inside it is named before it."""
        lines: list[str] = []
        while (excess := len(start) + len(make().flat()) - width) > 0:
            apart = self._apart(nodes, excess, width)
            if apart is None:
                break
            name = self.names.temporary(apart.outputs[0], _base(apart))
            lines += self._sentence(f"{name} = ", partial(self._node_expr, apart), [apart], width)
        laid = laid_out(start, make(), width)
        note = shape_note(nodes, self._inside, self.function.signature)
        if note and len(laid) == 1 and len(laid[0]) + len(note) + 2 <= width:
            return [*lines, f"{laid[0]}  {note}"]
        return [*lines, *([note] if note else []), *laid]

    def _apart(self, nodes: Iterable[Node], excess: int, width: int) -> Node | None:
        """The nested node that is best printed as a statement of its own, to save so many columns."""
        found: list[tuple[tuple[bool, bool, int], Node]] = []
        for node in (n for top in nodes for n in self._inside(top)):
            size, name = len(self._node_expr(node).flat()), len(_base(node))
            if size - name > _LEAST_SAVED:
                enough = size - name >= excess and size + name + 3 <= width
                found.append(((enough, node.op in _BASES, size), node))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _inside(self, node: Node) -> Iterator[Node]:
        """The nodes that are printed inside the expression of one, outer ones first."""
        for x in node.inputs:
            if isinstance(x, Value):
                yield from self._nested(x)

    def _nested(self, x: Value) -> Iterator[Node]:
        if x.node is not None and x.node.op != "param" and id(x) not in self.names.of:
            inner = self._printed[id(x)]
            yield inner
            yield from self._inside(inner)

    def _comments_of(self, nodes: Iterable[Node]) -> list[str]:
        """The definition's comments up to the statement of these nodes."""
        lines: list[str] = []
        for top in nodes:
            for node in (top, *self._inside(top)):
                span = statement_of(node.location)
                if node.location is not None and span is not None:
                    lines += self._comments_until(node.location.code, span.end_line)
        return lines

    def _comments_until(self, code: CodeType, line: int) -> list[str]:
        if code.co_filename != self.function.code.co_filename:
            return []
        if code not in self._comments:
            self._comments[code] = MethodComments(code)
        return self._comments[code].until(line)

    def _named(self, value: Value, node: Node) -> str:
        if id(value) in self.names.of:
            return self.names.of[id(value)]
        return self.names.temporary(value, _base(node))


def _base(node: Node) -> str:
    """What a value is called that its author did not name."""
    if node.op == "call" and node.attrs["function"].name != "forward":
        return str(node.attrs["function"].name)
    return _BASES.get(node.op, "h")
