"""Rewrite polynomials by known divisibilities: `Heads * (D//Heads)` is `D` once `D % Heads == 0`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from nest.ir._poly import Atom, Poly, add, divide, floordiv, multiply, rebuild, subtract

_ROUNDS = 8
_FORMS = 32

Facts = tuple[tuple[Poly, Poly], ...]


class _Rule(NamedTuple):
    """An exact division: `num == product`, where product is the denominator times the quotient's atom."""

    num: Poly
    product: Poly


@lru_cache(1 << 14)
def simplify(p: Poly, facts: Facts) -> Poly:
    """`p` where each `(num, den)` of `facts` is known to satisfy num % den == 0.

    A denominator times its exact quotient becomes the numerator, and a floor division that is exact by the
    facts becomes the quotient.
    """
    rules = [rule for num, den in facts for rule in _rule(num, den)]
    for _ in range(_ROUNDS):
        before = p
        p = rebuild(p, lambda atom: _divided(atom, rules, facts))
        for num, product in rules:
            p = _rewritten(p, product, num)
        if p == before:
            break
    return p


def _rule(num: Poly, den: Poly) -> Iterator[_Rule]:
    """The rule of one fact; none when the division is exact by its form alone."""
    whole = floordiv(num, den)
    known = {atom for m, _ in num + den for atom in m}
    new = [(m, c) for m, c in whole if len(m) == 1 and not m[0][0] and m[0] not in known]
    if len(new) != 1:
        return
    quotient: Poly = (new[0],)
    num = subtract(num, multiply(den, subtract(whole, quotient)))
    product = multiply(den, quotient)
    sign = 1 if product[0][1] > 0 else -1
    content = sign * gcd(*(c for _, c in num + product))
    yield _Rule(_over(num, content), _over(product, content))


def _over(p: Poly, by: int) -> Poly:
    return tuple((m, c // by) for m, c in p)


def _rewritten(p: Poly, old: Poly, new: Poly) -> Poly:
    """`p` with multiples of the leading term of `old` replaced, given that old == new."""
    return divide(p, old[0], subtract(old[1:], new))[1]


def _divided(atom: Atom, rules: list[_Rule], facts: Facts) -> Poly:
    name, num, den = atom
    if name:
        return (((atom,), 1),)
    num, den = simplify(num, facts), simplify(den, facts)
    for form in _forms(num, rules):
        if len(divide(form, den[0], den[1:])[1]) < len(num):
            return floordiv(form, den)
    return floordiv(num, den)


def _forms(num: Poly, rules: list[_Rule]) -> Iterable[Poly]:
    """The numerator with numerators of facts, a few deep, written as products."""
    seen = {num: None}
    queue = [num]
    while queue and len(seen) < _FORMS:
        form = queue.pop(0)
        for rule in rules:
            if rule.num and rule.num[0][1] > 0 and (new := _expanded(form, rule)) not in seen:
                seen[new] = None
                queue.append(new)
    return seen


def _expanded(p: Poly, rule: _Rule) -> Poly:
    """`p` with the numerator of a fact written as the product: not again inside what that product brings."""
    quotient, rest = divide(p, rule.num[0], rule.num[1:])
    return add(rest, multiply(quotient, rule.product))
