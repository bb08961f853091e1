"""Python expressions as small trees, printed with the parentheses that precedence asks for and wrapped to a width."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = [
    "Attr",
    "Binary",
    "Call",
    "Expr",
    "Index",
    "Listing",
    "Name",
    "Raw",
    "Repeated",
    "Several",
    "Unary",
    "laid_out",
    "literal",
]

_ATOM = 100
_PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "|": 5, "^": 6, "&": 7, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "@": 10,
    "neg": 11, "~": 11, "**": 12,
}  # fmt: skip


class Expr:
    """An expression; `precedence` is what decides whether it needs parentheses inside another."""

    precedence: int = _ATOM

    def flat(self) -> str:
        """On one line."""
        raise NotImplementedError

    def lines(self, width: int, used: int = 0) -> list[str]:
        """On as many lines as it takes to fit; the first one follows `used` columns of other text."""
        return [self.flat()]

    def inside(self, precedence: int) -> str:
        """As an operand of an operator that binds this tightly."""
        return self.flat() if self.precedence >= precedence else f"({self.flat()})"


@dataclass
class Raw(Expr):
    """Source text that is already an expression."""

    text: str

    def __post_init__(self) -> None:
        self.precedence = _precedence_of(self.text)

    def flat(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def _precedence_of(text: str) -> int:
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp):
        return 9 if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) else 4
    return _ATOM


class Name(Raw):
    """A variable."""


def literal(value: object) -> Raw:
    """A Python literal; nested tuples and lists too."""
    return Raw(_literal(value))


def _literal(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return f"[{', '.join(map(_literal, value))}]" if isinstance(value, list) else repr(value)


@dataclass
class Attr(Expr):
    """`base.name`."""

    base: Expr
    name: str

    def flat(self) -> str:
        return f"{self.base.inside(_ATOM)}.{self.name}"


@dataclass
class Index(Expr):
    """`base[index]`."""

    base: Expr
    index: str

    def flat(self) -> str:
        return f"{self.base.inside(_ATOM)}[{self.index}]"


@dataclass
class Binary(Expr):
    """`left op right`, with operators that associate to the left."""

    op: str
    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        self.precedence = _PRECEDENCE[self.op]

    @property
    def _left(self) -> int:
        """How tightly the left side must bind: comparisons chain in Python, powers associate to the right."""
        return self.precedence + (self.precedence == 4 or self.op == "**")

    def flat(self) -> str:
        return f"{self.left.inside(self._left)} {self.op} {self.right.inside(self.precedence + 1)}"

    def lines(self, width: int, used: int = 0) -> list[str]:
        if used + len(self.flat()) <= width or self.precedence == 4:
            return [self.flat()]
        return [*self._side(self.left, self._left, width, used), *self._continued(width)]

    def _continued(self, width: int) -> list[str]:
        first, *rest = self._side(self.right, self.precedence + 1, width, len(self.op) + 1)
        return [f"{self.op} {first}", *rest]

    @staticmethod
    def _side(side: Expr, precedence: int, width: int, used: int) -> list[str]:
        return side.lines(width, used) if side.precedence >= precedence else [side.inside(precedence)]


@dataclass
class Unary(Expr):
    """`-x` or `~x`."""

    op: str
    operand: Expr

    def __post_init__(self) -> None:
        self.precedence = _PRECEDENCE["neg"]

    def flat(self) -> str:
        return f"{self.op}{self.operand.inside(self.precedence)}"


def _bracketed(
    opening: str,
    items: Sequence[Expr],
    names: Sequence[str],
    closing: str,
    width: int,
    used: int,
    *,
    row: bool,
) -> list[str]:
    """Items between brackets: on the same line, else with `row` all on the next one, else one a line."""
    inner = ", ".join(n + i.flat() for n, i in zip(names, items, strict=True))
    trailing = "," if closing == ")" and not row and len(items) == 1 else ""
    if used + len(opening) + len(inner) + len(trailing) + len(closing) <= width or not items:
        return [f"{opening}{inner}{trailing}{closing}"]
    if row and len(inner) <= width - 4:
        return [opening, "    " + inner, closing]
    lines = [opening]
    if len(items) == 1 and isinstance(items[0], Repeated):
        return [opening, *("    " + line for line in items[0].lines(width - 4)), closing]
    for name, item in zip(names, items, strict=True):
        within = item.lines(width - 5, len(name))
        if isinstance(item, Binary) and len(within) > 1:
            within = ["(", *("    " + line for line in item.lines(width - 8)), ")"]
        within = [name + within[0], *within[1:]]
        within[-1] += ","
        lines += ["    " + line for line in within]
    return [*lines, closing]


@dataclass
class Call(Expr):
    """`function(args, name=value)`."""

    function: Expr
    args: Sequence[Expr] = ()
    kwargs: dict[str, Expr] = field(default_factory=dict)

    def _parts(self) -> tuple[list[Expr], list[str]]:
        return [*self.args, *self.kwargs.values()], [
            *("" for _ in self.args),
            *(f"{n}=" for n in self.kwargs),
        ]

    def flat(self) -> str:
        items, names = self._parts()
        inner = ", ".join(n + i.flat() for n, i in zip(names, items, strict=True))
        return f"{self.function.inside(_ATOM)}({inner})"

    def lines(self, width: int, used: int = 0) -> list[str]:
        head = self.function.inside(_ATOM)
        items, names = self._parts()
        if (
            isinstance(self.function, Attr)
            and isinstance(self.function.base, Call)
            and len(head) > width // 2
        ):
            # A long chain of methods breaks inside its first call, as a formatter would have it.
            first = self.function.base.lines(width, used)
            if len(first) > 1:
                opening = f"{first[-1]}.{self.function.name}("
                return [*first[:-1], *_bracketed(opening, items, names, ")", width, 0, row=True)]
        return _bracketed(f"{head}(", items, names, ")", width, used, row=True)


@dataclass
class Listing(Expr):
    """`[a, b]`, or `(a, b)`."""

    items: Sequence[Expr]
    brackets: str = "[]"

    def flat(self) -> str:
        trailing = "," if self.brackets == "()" and len(self.items) == 1 else ""
        return self.brackets[0] + ", ".join(i.flat() for i in self.items) + trailing + self.brackets[1]

    def lines(self, width: int, used: int = 0) -> list[str]:
        opening, closing = self.brackets[0], self.brackets[1]
        return _bracketed(opening, self.items, [""] * len(self.items), closing, width, used, row=False)


class Several(Listing):
    """`a, b`, as a statement has it; in parentheses where it takes several lines."""

    def __init__(self, items: Sequence[Expr]) -> None:
        super().__init__(items, "()")

    def flat(self) -> str:
        return super().flat()[1:-1]

    def lines(self, width: int, used: int = 0) -> list[str]:
        return [self.flat()] if used + len(self.flat()) <= width else super().lines(width, used)


@dataclass
class Repeated(Expr):
    """`item for _ in range(count)`, as a call's only argument or in brackets."""

    item: Expr
    count: str

    def __post_init__(self) -> None:
        self.precedence = 0

    def flat(self) -> str:
        return f"{self.item.flat()} for _ in range({self.count})"

    def lines(self, width: int, used: int = 0) -> list[str]:
        if used + len(self.flat()) <= width:
            return [self.flat()]
        return [*self.item.lines(width, used), f"for _ in range({self.count})"]


def laid_out(start: str, expr: Expr, width: int) -> list[str]:
    """A statement that begins with `start` and ends with an expression: `laid_out("x = ", ...)`."""
    first, *rest = expr.lines(width, len(start))
    if rest and _open(expr, first):
        return [f"{start}(", *("    " + line for line in expr.lines(width - 4)), ")"]
    return [start + first, *rest]


def _open(expr: Expr, first: str) -> bool:
    """Whether lines of an expression would be read as statements of their own: no bracket holds all of them."""
    return isinstance(expr, Binary) or first[-1] not in "(["
