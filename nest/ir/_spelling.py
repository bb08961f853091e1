"""How a dim is written: trees of operands that print with the parentheses they need.

A tree is a symbol's name, an integer, `(operator, left, right)`, `("neg", tree)`, or `Spelled`: a tree that
prints as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from nest.ir._poly import Atom, Poly

Tree = Any  # str | int | tuple[str, Tree, Tree] | tuple[str, Tree] | Spelled

_SUM, _PRODUCT, _UNARY, _ATOM = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Spelled:
    """`inner` as its author wrote it; `shape` is the author's own tree and gives the precedence."""

    text: str
    shape: Tree
    inner: Tree


def precedence(tree: Tree) -> int:
    """How tightly the outermost operator of a tree binds."""
    if isinstance(tree, Spelled):
        return precedence(tree.shape)
    if isinstance(tree, tuple):
        if tree[0] == "neg":
            return _UNARY
        return _SUM if tree[0] in "+-" else _PRODUCT
    return _UNARY if isinstance(tree, int) and tree < 0 else _ATOM


def render(tree: Tree) -> str:
    """The text of a tree, without spaces: `(Frames-1)//2+1`."""
    if isinstance(tree, Spelled):
        return tree.text
    if not isinstance(tree, tuple):
        return str(tree)
    if tree[0] == "neg":
        return "-" + _wrapped(tree[1], _ATOM)
    op, left, right = tree
    if op in "+-" and isinstance(right, int) and right < 0:
        op, right = "-" if op == "+" else "+", -right
    elif op == "+" and isinstance(right, tuple) and right[0] == "neg":
        op, right = "-", right[1]
    level = _SUM if op in "+-" else _PRODUCT
    # The right operand of + may be a sum: dropping its parentheses changes nothing.
    below = level if op == "+" else level + 1
    shown = _wrapped(right, below)
    if shown.startswith("-"):
        shown = f"({shown})"
    return f"{_wrapped(left, level)}{op}{shown}"


def _wrapped(tree: Tree, least: int) -> str:
    text = render(tree)
    return f"({text})" if precedence(tree) < least else text


def replace(tree: Tree, mapping: Mapping[str, Tree]) -> Tree:
    """The tree with symbols replaced; it is the same object where none occurs."""
    if isinstance(tree, Spelled):
        inner = replace(tree.inner, mapping)
        return tree if inner is tree.inner else inner
    if isinstance(tree, str):
        return mapping.get(tree, tree)
    if not isinstance(tree, tuple):
        return tree
    operands = [replace(operand, mapping) for operand in tree[1:]]
    same = all(new is old for new, old in zip(operands, tree[1:], strict=True))
    return tree if same else (tree[0], *operands)


def unspelled(tree: Tree) -> Tree:
    """The tree without what authors wrote in place of its parts."""
    if isinstance(tree, Spelled):
        return unspelled(tree.inner)
    return (tree[0], *map(unspelled, tree[1:])) if isinstance(tree, tuple) else tree


def tree_of(p: Poly) -> Tree:
    """A tree for a polynomial that nobody spelled: positive terms first."""
    tree: Tree = None
    for monomial, coefficient in sorted(p, key=lambda term: term[1] < 0):
        if tree is None:
            tree = _term(monomial, coefficient)
        else:
            tree = ("+" if coefficient > 0 else "-", tree, _term(monomial, abs(coefficient)))
    return 0 if tree is None else tree


def _term(monomial: tuple[Atom, ...], coefficient: int) -> Tree:
    factors = [_factor(atom) for atom in sorted(monomial, key=lambda a: not a[0])]
    if not factors or abs(coefficient) != 1:
        factors.insert(0, coefficient)
    elif coefficient < 0:
        factors[0] = ("neg", factors[0])
    return reduce(lambda left, right: ("*", left, right), factors)


def _factor(atom: Atom) -> Tree:
    name, num, den = atom
    return name if name else ("//", tree_of(num), tree_of(den))


__all__ = ["Spelled", "Tree", "precedence", "render", "replace", "tree_of", "unspelled"]
