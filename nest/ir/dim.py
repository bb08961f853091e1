"""Sizes of axes as exact integer expressions: `Dim`.

A dim is a polynomial over named symbols with floor division and remainder. Equality is decided on a canonical
form, so `((L+1)//2+1)//2` is `(L+3)//4`; the text stays as its author spelled it; and where every symbol
stands for a number the dim has that value too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import index
from typing import Any, NoReturn

from nest.ir import _dim_errors as errors
from nest.ir import _facts, _poly
from nest.ir._poly import Poly
from nest.ir._spelling import Spelled, Tree, render, replace, tree_of, unspelled
from nest.ir.relation import Relation

__all__ = ["Dim", "simplify"]


class Dim:
    """An immutable integer expression over symbols that are >= 0; denominators are > 0.

    Comparisons give a `Relation`, which can be required, and which decides an `if` only where the answer is
    known and is no coincidence of one checkpoint. `same` compares the expressions and never raises.
    """

    __slots__ = ("_key", "_mod", "_poly", "_text", "_tree", "_value", "_values")

    _poly: Poly
    _values: dict[str, int]
    _tree: Tree
    _mod: tuple[Dim, Dim] | None
    _key: Hashable
    _text: str | None
    _value: int | None

    def __init__(
        self, poly: Poly, values: dict[str, int], tree: Tree, mod: tuple[Dim, Dim] | None = None
    ) -> None:
        self._poly = poly
        self._values = values
        self._tree = tree
        self._mod = mod
        self._key = self._text = self._value = None

    @staticmethod
    def symbol(name: str, value: int | None = None) -> Dim:
        """A symbol, and the number that it stands for here, if any."""
        if not name.isidentifier():
            raise errors.bad_name(name)
        if value is not None and value < 0:
            raise errors.negative(name, value)
        return Dim(_poly.symbol(name), {} if value is None else {name: index(value)}, name)

    @staticmethod
    def constant(n: int) -> Dim:
        """A number."""
        return Dim(_poly.constant(index(n)), {}, index(n))

    @staticmethod
    def of(x: int | Dim) -> Dim:
        """`x` itself, or the dim of an integer."""
        return x if isinstance(x, Dim) else Dim.constant(x)

    @property
    def value(self) -> int | None:
        """The number, or None when a symbol of the expression stands for none."""
        if self._value is None and _poly.symbols(self._poly) <= self._values.keys():
            self._value = self.evaluate(self._values)
        return self._value

    @property
    def key(self) -> Hashable:
        """The canonical expression, hashable; values are no part of it."""
        if self._key is None:
            self._key = _poly.normal(self._poly)
        return self._key

    @property
    def text(self) -> str:
        """The expression as its author spelled it."""
        if self._text is None:
            self._text = render(self._tree)
        return self._text

    @property
    def symbolic_text(self) -> str:
        """The expression in its symbols alone: a name that build gave to a size is written out."""
        return render(unspelled(self._tree))

    def as_symbol(self) -> str | None:
        """The name, when the dim is one bare symbol."""
        return _poly.as_symbol(self._poly)

    def as_mod(self) -> tuple[Dim, Dim] | None:
        """`(num, den)` of a dim that was written as `num % den`."""
        return self._mod

    def symbols(self) -> frozenset[str]:
        """The names in the canonical expression."""
        return _poly.symbols(self._poly)

    def at_most(self, other: int | Dim) -> bool | None:
        """Whether it is never more than `other`, by the expressions and by known values; None where neither says."""
        rest = Dim.of(other) - self
        if rest.value is not None:
            return rest.value >= 0
        known = {name: Dim.constant(value) for name, value in rest._values.items()}
        return True if _poly.nonnegative(rest.substitute(known)._poly) else None

    def same(self, other: int | Dim) -> bool:
        """Whether both are the same expression, whatever they are worth."""
        other = Dim.of(other)
        return self._poly == other._poly or self.key == other.key

    def substitute(self, mapping: Mapping[str, Dim]) -> Dim:
        """The dim with symbols replaced, all at once; its value follows from what replaces them.

        Raises:
            DefinitionError: it divides by what has become 0.
        """
        if isinstance(self._tree, str | int):  # nearly all dims: one name or number
            return Dim.of(mapping.get(self._tree, self)) if isinstance(self._tree, str) else self
        new = {name: Dim.of(dim) for name, dim in mapping.items()}
        tree = replace(self._tree, {name: dim._tree for name, dim in new.items()})
        names = self.symbols()
        if tree is self._tree and names.isdisjoint(new):
            return self
        values = {name: value for name, value in self._values.items() if name in names and name not in new}
        used = sorted(names & new.keys())
        for name in used:
            values = _merged(values, new[name]._values)
        try:
            poly = _poly.substitute(self._poly, tuple((name, new[name]._poly) for name in used))
        except ZeroDivisionError:
            raise errors.denominator(render(tree), "0") from None
        mod = self._mod and (self._mod[0].substitute(new), self._mod[1].substitute(new))
        return Dim(poly, values, tree, mod)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The number with `env`'s numbers for the symbols; division rounds down.

        The numbers may be anything with `+`, `*`, `//` and `<`, such as the sizes of a graph that is being built.

        Raises:
            DefinitionError: a symbol is not in `env`, or a denominator is not positive.
        """
        try:
            return _poly.evaluate(self._poly, env)
        except KeyError as error:
            raise errors.unbound(self.text, error.args[0], env) from None
        except ZeroDivisionError as error:
            raise errors.denominator(self.text, error.args[0]) from None

    def spelled(self, text: str, shape: Tree) -> Dim:
        """The same dim, printed as `text`, whose own tree is `shape`."""
        return Dim(self._poly, self._values, Spelled(text, shape, self._tree), self._mod)

    def __add__(self, other: int | Dim) -> Dim:
        return _binary("+", self, other)

    def __radd__(self, other: int) -> Dim:
        return _binary("+", other, self)

    def __sub__(self, other: int | Dim) -> Dim:
        return _binary("-", self, other)

    def __rsub__(self, other: int) -> Dim:
        return _binary("-", other, self)

    def __mul__(self, other: int | Dim) -> Dim:
        return _binary("*", self, other)

    def __rmul__(self, other: int) -> Dim:
        return _binary("*", other, self)

    def __floordiv__(self, other: int | Dim) -> Dim:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _binary("//", other, self)

    def __mod__(self, other: int | Dim) -> Dim:
        return _binary("%", self, other)

    def __rmod__(self, other: int) -> Dim:
        return _binary("%", other, self)

    def __truediv__(self, other: object) -> NoReturn:
        raise errors.fraction(self, other)

    def __rtruediv__(self, other: object) -> NoReturn:
        raise errors.fraction(other, self)

    def __neg__(self) -> Dim:
        tree = -self._tree if isinstance(self._tree, int) else ("neg", self._tree)
        return Dim(_poly.scale(self._poly, -1), self._values, tree)

    def __pos__(self) -> Dim:
        return self

    def __eq__(self, other: object) -> Relation:  # type: ignore[override]
        return _relation(self, "==", other)

    def __ne__(self, other: object) -> Relation:  # type: ignore[override]
        return _relation(self, "!=", other)

    def __lt__(self, other: int | Dim) -> Relation:
        return _relation(self, "<", other)

    def __le__(self, other: int | Dim) -> Relation:
        return _relation(self, "<=", other)

    def __gt__(self, other: int | Dim) -> Relation:
        return _relation(self, ">", other)

    def __ge__(self, other: int | Dim) -> Relation:
        return _relation(self, ">=", other)

    def __hash__(self) -> int:
        n = _poly.as_constant(self._poly)
        return hash(self.key) if n is None else hash(n)

    def __index__(self) -> int:
        value = self.value
        if value is None:
            raise errors.no_number(self.text, sorted(self.symbols() - self._values.keys()))
        return value

    __int__ = __index__

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __repr__(self) -> str:
        return self.text


def simplify(dim: Dim, facts: Iterable[tuple[Dim, Dim | int]]) -> Dim:
    """The dim where each `(num, den)` of `facts` satisfies num % den == 0: `Heads*(D//Heads)` becomes `D`.

    It keeps its text where the facts change nothing.
    """
    known = [(Dim.of(num), Dim.of(den)) for num, den in facts]
    poly = _facts.simplify(dim._poly, tuple((num._poly, den._poly) for num, den in known))
    if poly == dim._poly:
        return dim
    values = dim._values
    for side in (side for fact in known for side in fact):
        values = _merged(values, side._values)
    return Dim(poly, values, tree_of(poly))


_OPERATIONS: dict[str, Callable[[Poly, Poly], Poly]] = {
    "+": _poly.add,
    "-": _poly.subtract,
    "*": _poly.multiply,
    "//": _poly.floordiv,
    "%": _poly.mod,
}


def _binary(op: str, left: Any, right: Any) -> Dim:
    if not (hasattr(left, "__index__") and hasattr(right, "__index__")):
        return NotImplemented  # type: ignore[no-any-return]
    a, b = Dim.of(left), Dim.of(right)
    symbolic = _poly.as_constant(b._poly) is None
    if op in ("//", "%") and (worth := b.value) is not None and (worth < 1 if symbolic else worth == 0):
        text = render((op, a._tree, b._tree))
        raise errors.denominator(text, f"{b.text} = {worth}" if symbolic else str(worth))
    poly = _OPERATIONS[op](a._poly, b._poly)
    if not symbolic and _poly.as_constant(a._poly) is not None:
        return Dim(poly, {}, _poly.as_constant(poly))
    if isinstance(b._tree, int) and poly == a._poly:
        return a  # x+0, x-0, x*1, x//1
    if isinstance(a._tree, int) and poly == b._poly:
        return b  # 0+x, 1*x
    mod = (a, b) if op == "%" else None
    return Dim(poly, _merged(a._values, b._values), (op, a._tree, b._tree), mod)


def _relation(left: Dim, op: str, right: object) -> Relation:
    if not isinstance(right, Dim | int):
        return NotImplemented  # type: ignore[no-any-return]
    return Relation(left, op, Dim.of(right))


def _merged(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    if a is b or not b:
        return a
    if not a:
        return b
    for name in a.keys() & b.keys():
        if a[name] != b[name]:
            raise errors.two_values(name, a[name], b[name])
    return a | b
