"""Python expressions as small trees, printed with the parentheses that precedence asks for and wrapped to a width."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Attr", "Binary", "Call", "Expr", "Index", "Listing", "Name", "Raw", "Unary", "literal"]

_ATOM = 100
_NOT_FINITE = re.compile(r"(-?inf|nan)\b")
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

    def lines(self, width: int) -> list[str]:
        """On as many lines as it takes to fit; the first line may follow other text."""
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
    """A Python literal; nested tuples of numbers too."""
    if isinstance(value, float) and not math.isfinite(value):
        return Raw(f'float("{value}")')
    return Raw(
        _NOT_FINITE.sub(r'float("\1")', repr(value)) if isinstance(value, list | tuple) else repr(value)
    )


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

    def flat(self) -> str:
        # Comparisons chain in Python, so both sides of one are kept apart.
        own = self.precedence
        left = own + 1 if own == 4 or self.op == "**" else own
        return f"{self.left.inside(left)} {self.op} {self.right.inside(own + 1)}"

    def lines(self, width: int) -> list[str]:
        if len(self.flat()) <= width or self.precedence == 4:
            return [self.flat()]
        return [*self._side(self.left, self.precedence, width), *self._continued(width)]

    def _continued(self, width: int) -> list[str]:
        first, *rest = self._side(self.right, self.precedence + 1, width - len(self.op) - 1)
        return [f"{self.op} {first}", *rest]

    @staticmethod
    def _side(side: Expr, precedence: int, width: int) -> list[str]:
        return side.lines(width) if side.precedence >= precedence else [side.inside(precedence)]


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
    opening: str, items: Sequence[Expr], names: Sequence[str], closing: str, width: int
) -> list[str]:
    """Items between brackets, one a line where they do not fit."""
    flat = opening + ", ".join(n + i.flat() for n, i in zip(names, items, strict=True)) + closing
    if len(flat) <= width or not items:
        return [flat]
    lines = [opening]
    for name, item in zip(names, items, strict=True):
        inner = item.lines(width - 4 - len(name) - 1)
        if isinstance(item, Binary) and len(inner) > 1:
            inner = ["(", *("    " + line for line in inner), ")"]
        inner = [name + inner[0], *inner[1:]]
        inner[-1] += ","
        lines += ["    " + line for line in inner]
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

    def lines(self, width: int) -> list[str]:
        head = self.function.inside(_ATOM)
        if (
            len(head) > width // 2
            and isinstance(self.function, Attr)
            and isinstance(self.function.base, Call)
        ):
            # A long chain of methods breaks inside its first call, as a formatter would have it.
            first = self.function.base.lines(width)
            if len(first) > 1:
                items, names = self._parts()
                opening = f"{first[-1]}.{self.function.name}("
                return [*first[:-1], *_bracketed(opening, items, names, ")", width)]
        items, names = self._parts()
        return _bracketed(f"{head}(", items, names, ")", width)


@dataclass
class Listing(Expr):
    """`[a, b]`, or `(a, b)`."""

    items: Sequence[Expr]
    brackets: str = "[]"

    def flat(self) -> str:
        trailing = "," if self.brackets == "()" and len(self.items) == 1 else ""
        return self.brackets[0] + ", ".join(i.flat() for i in self.items) + trailing + self.brackets[1]

    def lines(self, width: int) -> list[str]:
        return _bracketed(self.brackets[0], self.items, [""] * len(self.items), self.brackets[1], width)
