"""Read a dim as it is spelled in an annotation: `(Frames-1)//2+1`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from operator import add, floordiv, mod, mul, sub
from typing import NamedTuple, NoReturn

from nest.errors import DefinitionError
from nest.ir._spelling import Tree
from nest.ir.dim import Dim

__all__ = ["parse"]

_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)|(?P<name>[^\W\d]\w*)|(?P<op>//|\*\*|[-+*/%()])|(?P<other>\S))")
_OPERATE: dict[str, Callable[[Dim, Dim], Dim]] = {"+": add, "-": sub, "*": mul, "//": floordiv, "%": mod}
_HINTS = {
    "/": "'/' gives a fraction; use '//' for floor division",
    "**": "a dim has no powers; write the product",
}


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse(text: str, lookup: Callable[[str], Dim]) -> Dim:
    """The dim that `text` spells, with `lookup` giving the dim of each name; it prints as `text`.

    The grammar is integers, names, `+ - * // %` and parentheses, with Python's precedence.

    Raises:
        DefinitionError: the text is not a dim, or `lookup` raises KeyError; a caret points at the column.
    """
    source = text.strip()
    tree = _tree(source)
    dim = _built(tree, source, lookup)
    return dim if dim.text == source else dim.spelled(source, _plain(tree))


def _built(tree: Tree, source: str, lookup: Callable[[str], Dim]) -> Dim:
    if isinstance(tree, int):
        return Dim.constant(tree)
    if isinstance(tree, _Token):
        try:
            return Dim.of(lookup(tree.text))
        except KeyError:
            _fail(source, tree.column, f"nothing here is named '{tree.text}'")
    if tree[0] == "neg":
        return -_built(tree[1], source, lookup)
    return _OPERATE[tree[0]](_built(tree[1], source, lookup), _built(tree[2], source, lookup))


def _plain(tree: Tree) -> Tree:
    """The tree with names for tokens."""
    if isinstance(tree, _Token):
        return tree.text
    return (tree[0], *map(_plain, tree[1:])) if isinstance(tree, tuple) else tree


@lru_cache(4096)
def _tree(source: str) -> Tree:
    return _Parser(source).whole()


def _fail(source: str, column: int, why: str) -> NoReturn:
    raise DefinitionError(f"Not a dim: {why}.\n    {source}\n    {' ' * column}^")


class _Parser:
    """Recursive descent over the tokens of one dim; names stay tokens, so a failed lookup has a column."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = [
            _Token(str(found.lastgroup), found[found.lastgroup or 0], found.start(found.lastgroup or 0))
            for found in _TOKEN.finditer(source)
        ]
        self.tokens.append(_Token("end", "", len(source)))

    def whole(self) -> Tree:
        tree = self.sum()
        if self.tokens[0].kind != "end":
            self.fail("an operator")
        return tree

    def sum(self) -> Tree:
        tree = self.product()
        while self.tokens[0].text in ("+", "-"):
            tree = (self.tokens.pop(0).text, tree, self.product())
        return tree

    def product(self) -> Tree:
        tree = self.unary()
        while self.tokens[0].text in ("*", "//", "%"):
            tree = (self.tokens.pop(0).text, tree, self.unary())
        return tree

    def unary(self) -> Tree:
        if self.tokens[0].text == "-":
            self.tokens.pop(0)
            operand = self.unary()
            return -operand if isinstance(operand, int) else ("neg", operand)
        if self.tokens[0].text == "(":
            self.tokens.pop(0)
            tree = self.sum()
            if self.tokens[0].text != ")":
                self.fail("')'")
            self.tokens.pop(0)
            return tree
        if self.tokens[0].kind not in ("int", "name"):
            self.fail("a name, an integer or '('")
        token = self.tokens.pop(0)
        return int(token.text) if token.kind == "int" else token

    def fail(self, expected: str) -> NoReturn:
        token = self.tokens[0]
        came = f"'{token.text}'" if token.text else "the end"
        _fail(self.source, token.column, _HINTS.get(token.text) or f"expected {expected}, found {came}")
