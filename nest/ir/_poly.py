"""Canonical integer polynomials with floor division: the arithmetic under `Dim`.

A polynomial is a tuple of (monomial, coefficient) in descending degree-lexicographic order; a monomial is a
sorted tuple of atoms, repeated for powers; an atom is `(name, (), ())` for a symbol and `("", numerator,
denominator)` for a floor division. Plain tuples are hashable and comparable, so that every operation caches.

Every symbol is an integer >= 0 and every denominator is > 0. `a % n` has no atom: it is `a - n*(a//n)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import gcd

Atom = tuple[str, "Poly", "Poly"]
Monomial = tuple[Atom, ...]
Poly = tuple[tuple[Monomial, int], ...]

ZERO: Poly = ()
ONE: Poly = (((), 1),)
_CACHE = 1 << 16


def constant(value: int) -> Poly:
    """The polynomial of one integer."""
    return (((), value),) if value else ZERO


def symbol(name: str) -> Poly:
    """The polynomial of one symbol."""
    return ((((name, ZERO, ZERO),), 1),)


def as_constant(p: Poly) -> int | None:
    """The integer that `p` is, or None when it has a symbol."""
    if not p:
        return 0
    return p[0][1] if not p[0][0] else None


def as_symbol(p: Poly) -> str | None:
    """The name of the symbol that `p` is, or None when it is anything else."""
    return p[0][0][0][0] or None if len(p) == 1 and len(p[0][0]) == 1 and p[0][1] == 1 else None


def _order(term: tuple[Monomial, int]) -> tuple[int, Monomial]:
    return (-len(term[0]), term[0])


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Poly:
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        sums[monomial] = sums.get(monomial, 0) + coefficient
    return tuple(sorted(((m, c) for m, c in sums.items() if c), key=_order))


@lru_cache(_CACHE)
def add(p: Poly, q: Poly) -> Poly:
    """p + q."""
    return _collect(p + q) if p and q else p or q


def subtract(p: Poly, q: Poly) -> Poly:
    """p - q."""
    return add(p, scale(q, -1))


def scale(p: Poly, by: int) -> Poly:
    """p * by, for an integer."""
    return tuple((m, c * by) for m, c in p) if by else ZERO


@lru_cache(_CACHE)
def multiply(p: Poly, q: Poly) -> Poly:
    """p * q."""
    return _collect((tuple(sorted(m + n)), c * d) for m, c in p for n, d in q)


def _without(m: Monomial, factor: Monomial) -> Monomial | None:
    """`m / factor`, or None when `factor` does not divide it."""
    rest = list(m)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def divide(p: Poly, lead: tuple[Monomial, int], tail: Poly) -> tuple[Poly, Poly]:
    """Quotient and remainder by `lead + tail`; multiples of lead keep coefficients in [0, lead).

    With `lead` the largest term of the divisor the remainder is unique, so that (q*d + r) // d is q + r//d
    whichever way it was written.
    """
    monomial, coefficient = lead
    quotient, rest = ZERO, p
    while True:
        for m, c in rest:
            cofactor = _without(m, monomial)
            if cofactor is not None and (times := c // coefficient):
                break
        else:
            return quotient, rest
        part: Poly = ((cofactor, times),)
        quotient = add(quotient, part)
        rest = subtract(rest, add(((m, times * coefficient),), multiply(part, tail)))


def nonnegative(p: Poly) -> bool:
    """Whether `p` is >= 0 by its form alone."""
    return all(c > 0 and all(nonnegative(atom[1]) for atom in m) for m, c in p)


def _cancel(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """Divide numerator and denominator by their common content and monomial.

    floor((g*P + c) / (g*d)) is floor((P + c//g) / d), so the numerator's constant does not limit g.
    """
    g = gcd(*(c for _, c in d), *(c for m, c in p if m))
    common = list(d[0][0])
    for m, _ in p + d:
        common = [a for i, a in enumerate(common) if common[:i].count(a) < m.count(a)]
    shared = tuple(a for a in common if nonnegative(a[1]))
    p = tuple((_without(m, shared) or (), c // g) for m, c in p if c // g)
    return p, tuple((_without(m, shared) or (), c // g) for m, c in d)


def _flatten(r: Poly, d: Poly, hint: Poly) -> Poly | None:
    """floor((y//a + z) / d) as floor((y + a*z) / (a*d)), where exactly one term of `r` is such a y//a.

    A term -(y//a) is (-y + a-1)//a. Modulo 2 the two are alike, and the sign in `hint`, the numerator before
    it was reduced, decides.
    """
    n = as_constant(d)
    signs = dict(hint)
    found: list[tuple[Monomial, int]] = []
    for m, c in r:
        if len(m) == 1 and not m[0][0]:
            if c == 1 and not (n == 2 and signs.get(m, 1) < 0):
                found.append((m, 1))
            elif c == -1 or (n is not None and c == n - 1):
                found.append((m, -1))
    if len(found) != 1:
        return None
    m, sign = found[0]
    _, y, a = m[0]
    z = add(r, ((m, -sign),))
    top = y if sign == 1 else add(add(scale(y, -1), a), constant(-1))
    return floordiv(add(top, multiply(a, z)), multiply(a, d))


def _rank(p: Poly) -> tuple[tuple[bool, int], ...]:
    return tuple((c < 0, abs(c)) for m, c in p if m)


@lru_cache(_CACHE)
def floordiv(p: Poly, d: Poly, flatten: bool = True) -> Poly:
    """p // d. Raises ZeroDivisionError when `d` is the constant 0."""
    if not d:
        raise ZeroDivisionError
    negated = scale(d, -1)
    if nonnegative(negated):
        return floordiv(scale(p, -1), negated, flatten)
    quotient, r = divide(p, d[0], d[1:])
    if not r:
        return quotient
    smaller, divisor = _cancel(r, d)
    if divisor != d:
        return add(quotient, floordiv(smaller, divisor, flatten))
    if flatten and (flat := _flatten(r, d, p)) is not None:
        return add(quotient, flat)
    # floor(r/d) is -1 - floor((-r-1)/d): of the two numerators the one of smaller coefficients is canonical.
    turns, other = divide(add(scale(r, -1), constant(-1)), d[0], d[1:])
    if _rank(other) < _rank(r):
        turned = floordiv(other, d, flatten)
        return add(quotient, scale(add(add(turns, turned), ONE), -1))
    return add(quotient, (((("", r, d),), 1),))


def mod(p: Poly, d: Poly) -> Poly:
    """p % d."""
    return subtract(p, multiply(d, floordiv(p, d)))


def rebuild(p: Poly, atom: Callable[[Atom], Poly]) -> Poly:
    """`p` with each atom replaced."""
    total = ZERO
    for m, c in p:
        product = constant(c)
        for factor in m:
            product = multiply(product, atom(factor))
        total = add(total, product)
    return total


@lru_cache(_CACHE)
def substitute(p: Poly, mapping: tuple[tuple[str, Poly], ...]) -> Poly:
    """`p` with symbols replaced, all at once."""
    new = dict(mapping)

    def replace(atom: Atom) -> Poly:
        name, num, den = atom
        if name:
            return new.get(name, (((atom,), 1),))
        return floordiv(substitute(num, mapping), substitute(den, mapping))

    return rebuild(p, replace)


@lru_cache(_CACHE)
def normal(p: Poly) -> Poly:
    """The form that decides equality: floor divisions that depend on each other are written in one way.

    floor(y/2m) + floor((y+m)/2m) is floor(y/m), so of each such pair only the first is kept. Arithmetic does
    not do this itself, because sums of floor divisions do not flatten when they are divided again.
    """
    return rebuild(p, _normal_atom)


@lru_cache(_CACHE)
def _normal_atom(atom: Atom) -> Poly:
    name, num, den = atom
    if name:
        return (((atom,), 1),)
    whole = floordiv(normal(num), normal(den), False)
    return rebuild(whole, _halve)


def _halve(atom: Atom) -> Poly:
    name, num, den = atom
    n = as_constant(den)
    offset = num[-1][1] if num and not num[-1][0] else 0
    if name or n is None or n % 2 or offset < n // 2:
        return (((atom,), 1),)
    y = add(num, constant(-(n // 2)))
    both = normal(floordiv(y, constant(n // 2), False))
    return subtract(both, normal(floordiv(y, den, False)))


@lru_cache(_CACHE)
def symbols(p: Poly) -> frozenset[str]:
    """The names of the symbols in `p`."""
    names: set[str] = set()
    for m, _ in p:
        for name, num, den in m:
            names |= {name} if name else symbols(num) | symbols(den)
    return frozenset(names)


def evaluate(p: Poly, env: Mapping[str, int]) -> int:
    """The integer that `p` is.

    Raises:
        KeyError: a symbol is not in `env`.
        ZeroDivisionError: a denominator is less than 1; its argument is the denominator.
    """
    total = 0
    for m, c in p:
        for name, num, den in m:
            if name:
                c *= env[name]
                continue
            below = evaluate(den, env)
            if below < 1:
                raise ZeroDivisionError(below)
            c *= evaluate(num, env) // below
        total += c
    return total
