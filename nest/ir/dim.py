"""Sizes of axes as exact integer expressions: `Dim`.

A dim is a polynomial over named symbols with floor division and remainder. Equality is decided on a canonical
form, so `((L+1)//2+1)//2` is `(L+3)//4`; the text stays as its author spelled it; and where every symbol
stands for a number the dim has that value too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import index
from typing import Any, NoReturn

from nest.errors import DefinitionError
from nest.ir import _facts, _poly
from nest.ir._poly import Poly
from nest.ir._spelling import Spelled, Tree, render, replace, tree_of
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

    def __init__(self, poly: Poly, values: dict[str, int], tree: Tree) -> None:
        self._poly = poly
        self._values = values
        self._tree = tree
        self._mod: tuple[Dim, Dim] | None = None
        self._text: str | None = None
        self._key: Hashable = None
        self._value: int | None = None

    @staticmethod
    def symbol(name: str, value: int | None = None) -> Dim:
        """A symbol, and the number that it stands for here, if any."""
        if not name.isidentifier():
            raise DefinitionError(f"A dim cannot be named {name!r}: use letters, digits and underscores.")
        if value is not None and value < 0:
            raise DefinitionError(f"The dim {name} cannot be {value}: a size is 0 or more.")
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

    def as_symbol(self) -> str | None:
        """The name, when the dim is one bare symbol."""
        names = _poly.symbols(self._poly)
        return next(iter(names)) if len(names) == 1 and self._poly == _poly.symbol(*names) else None

    def as_mod(self) -> tuple[Dim, Dim] | None:
        """`(num, den)` of a dim that was made as `num % den`."""
        return self._mod

    def symbols(self) -> frozenset[str]:
        """The names in the canonical expression."""
        return _poly.symbols(self._poly)

    def same(self, other: int | Dim) -> bool:
        """Whether both are the same expression, whatever they are worth."""
        other = Dim.of(other)
        return self._poly == other._poly or self.key == other.key

    def substitute(self, mapping: Mapping[str, Dim]) -> Dim:
        """The dim with symbols replaced, all at once; its value follows from what replaces them."""
        names = _poly.symbols(self._poly)
        if not any(name in mapping for name in names):
            return self
        new = {name: Dim.of(mapping[name]) for name in names if name in mapping}
        values = {name: value for name, value in self._values.items() if name in names and name not in new}
        for dim in new.values():
            values = _merged(values, dim._values)
        try:
            poly = _poly.substitute(self._poly, {name: dim._poly for name, dim in new.items()})
        except ZeroDivisionError:
            shown = ", ".join(f"{name} = {dim}" for name, dim in sorted(new.items()))
            raise DefinitionError(f"The dim {self.text} divides by zero with {shown}.") from None
        made = Dim(poly, values, replace(self._tree, {name: dim._tree for name, dim in new.items()}))
        if self._mod is not None:
            made._mod = (self._mod[0].substitute(new), self._mod[1].substitute(new))
        return made

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The number with `env`'s numbers for the symbols, floor semantics.

        Raises:
            DefinitionError: a symbol is not in `env`, or a denominator is not positive.
        """
        try:
            return _poly.evaluate(self._poly, env)
        except KeyError as error:
            known = ", ".join(f"{name} = {value}" for name, value in sorted(env.items())) or "none"
            raise DefinitionError(
                f"The dim {self.text} cannot be evaluated: {error.args[0]} has no value. Known: {known}."
            ) from None
        except ZeroDivisionError as error:
            raise DefinitionError(
                f"The dim {self.text} cannot be evaluated: a denominator is {error.args[0]}, not 1 or more."
            ) from None

    def spelled(self, text: str, shape: Tree) -> Dim:
        """The same dim, printed as `text`, whose own tree is `shape`."""
        made = Dim(self._poly, self._values, Spelled(text, shape, self._tree))
        made._mod = self._mod
        return made

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

    def __neg__(self) -> Dim:
        tree = -self._tree if isinstance(self._tree, int) else ("neg", self._tree)
        return Dim(_poly.scale(self._poly, -1), self._values, tree)

    def __pos__(self) -> Dim:
        return self

    def __truediv__(self, other: object) -> NoReturn:
        raise DefinitionError(
            f"{self.text}/{other} is not a dim: / gives a fraction. Use // for the whole number of times, "
            f"{self.text}//{other}."
        )

    def __rtruediv__(self, other: object) -> NoReturn:
        raise DefinitionError(
            f"{other}/{self.text} is not a dim: / gives a fraction. Use // for the whole number of times, "
            f"{other}//{self.text}."
        )

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
            raise DefinitionError(
                f"The dim {self.text} has no number before the call: {_unknown(self)}. Where an integer is "
                f"needed, pass the dim itself, or give a number for it."
            )
        return value

    __int__ = __index__

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def _unknown(*dims: Dim) -> str:
    names = sorted({name for dim in dims for name in dim.symbols() if name not in dim._values})
    return f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} no value"


def _relation(left: Dim, op: str, right: Any) -> Relation:
    return Relation(left, op, Dim.of(right)) if isinstance(right, Dim | int) else NotImplemented


def _merged(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    if a is b or not b:
        return a
    if not a:
        return b
    for name in a.keys() & b.keys():
        if a[name] != b[name]:
            raise DefinitionError(
                f"The symbol {name} stands for {a[name]} and for {b[name]} in one expression: two scopes use "
                f"one name. Give one of them another name."
            )
    return a | b


_OPERATIONS: dict[str, Callable[[Poly, Poly], Poly]] = {
    "+": _poly.add,
    "-": lambda p, q: _poly.add(p, _poly.scale(q, -1)),
    "*": _poly.multiply,
    "//": _poly.floordiv,
    "%": _poly.mod,
}


def _binary(op: str, left: Any, right: Any) -> Dim:
    if not (hasattr(left, "__index__") and hasattr(right, "__index__")):
        return NotImplemented  # type: ignore[no-any-return]
    a, b = Dim.of(left), Dim.of(right)
    if op in ("//", "%"):
        _check_denominator(op, a, b)
    poly = _OPERATIONS[op](a._poly, b._poly)
    if _poly.as_constant(a._poly) is not None and _poly.as_constant(b._poly) is not None:
        return Dim(poly, {}, _poly.as_constant(poly))
    if isinstance(b._tree, int) and poly == a._poly:
        return a  # x+0, x-0, x*1, x//1
    if isinstance(a._tree, int) and poly == b._poly:
        return b  # 0+x, 1*x
    made = Dim(poly, _merged(a._values, b._values), (op, a._tree, b._tree))
    if op == "%":
        made._mod = (a, b)
    return made


def _check_denominator(op: str, a: Dim, b: Dim) -> None:
    value = b.value
    if value is None or value > 0 or (value < 0 and not b.symbols()):
        return
    worth = f" = {value}" if b.symbols() else ""
    raise DefinitionError(
        f"The dim {render((op, a._tree, b._tree))} divides by {b.text}{worth}, and must divide by 1 or more."
    )


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
