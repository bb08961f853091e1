"""Dims against plain integers, against sympy, and against every small case."""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.ir.dim import Dim
from nest.ir.parse import parse

NAMES = ("a", "b", "c")
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
Tree = Any

leaves = st.one_of(st.sampled_from(NAMES), st.integers(-5, 7))
positive = st.one_of(st.integers(1, 6), st.sampled_from(NAMES))
environments = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})
several = st.lists(environments, min_size=8, max_size=8)


def _grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner),
        st.tuples(st.sampled_from(["//", "//", "%"]), inner, positive),
        st.tuples(st.sampled_from(["//", "%"]), inner, inner),
    )


trees = st.recursive(leaves, _grow, max_leaves=9)


class UndefinedError(Exception):
    """A denominator that is not positive: no dim."""


def compute(tree: Tree, leaf: Callable[[Any], Any]) -> Any:
    """The tree over whatever `leaf` makes of names and integers."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    op, left, right = tree[0], compute(tree[1], leaf), compute(tree[2], leaf)
    if op in ("//", "%") and isinstance(right, int) and right < 1:
        raise UndefinedError
    return OPERATIONS[op](left, right)


def number(tree: Tree, env: dict[str, int]) -> int | None:
    try:
        return int(compute(tree, lambda x: env.get(x, x)))
    except UndefinedError:
        return None


def dim_of(tree: Tree) -> Dim | None:
    """The tree's dim; none where a denominator is constant and not positive."""

    def divide(op: str, left: Dim, right: Dim) -> Dim:
        if op in ("//", "%") and right.value is not None and right.value < 1:
            raise UndefinedError
        return OPERATIONS[op](left, right)

    def make(node: Tree) -> Dim:
        if not isinstance(node, tuple):
            return Dim.symbol(node) if isinstance(node, str) else Dim.constant(node)
        return divide(node[0], make(node[1]), make(node[2]))

    try:
        return make(tree)
    except UndefinedError:
        return None


@settings(deadline=None, max_examples=250)
@given(trees, several)
def test_arithmetic_keeps_the_value(tree: Tree, envs: list[dict[str, int]]) -> None:
    dim = dim_of(tree)
    for env in envs:
        expected = number(tree, env)
        if dim is not None and expected is not None:
            assert dim.evaluate(env) == expected


@settings(deadline=None, max_examples=150)
@given(trees, several)
def test_the_text_reads_back_as_the_same_dim(tree: Tree, envs: list[dict[str, int]]) -> None:
    dim = dim_of(tree)
    if dim is None:
        return
    again = parse(dim.text, Dim.symbol)
    assert again.same(dim)
    assert again.text == dim.text
    for env in envs:
        if (expected := number(tree, env)) is not None:
            assert eval(dim.text, {}, env) == expected


@settings(deadline=None, max_examples=150)
@given(trees, trees, several)
def test_dims_that_are_the_same_have_the_same_values(
    one: Tree, other: Tree, envs: list[dict[str, int]]
) -> None:
    """Also for a dim and its rearrangements, which are far more often the same."""
    for left, right in (
        (one, other),
        (("+", one, other), ("+", other, one)),
        (one, ("-", one, ("%", other, 1))),
    ):
        a, b = dim_of(left), dim_of(right)
        if a is None or b is None or not a.same(b):
            continue
        for env in envs:
            x, y = number(left, env), number(right, env)
            assert x is None or y is None or x == y


@settings(deadline=None, max_examples=120)
@given(trees, trees, trees, environments)
def test_substitution_commutes_with_evaluation(
    outer: Tree, one: Tree, other: Tree, env: dict[str, int]
) -> None:
    target, first, second = (dim_of(tree) for tree in (outer, one, other))
    x, y = number(one, env), number(other, env)
    if target is None or first is None or second is None or x is None or y is None or min(x, y) < 0:
        return
    expected = number(outer, env | {"a": x, "b": y})
    if expected is None:
        return
    replaced = target.substitute({"a": first, "b": second})
    assert replaced.evaluate(env) == expected
    assert eval(replaced.text, {}, env) == expected


@settings(deadline=None, max_examples=120)
@given(trees, trees, positive)
def test_multiples_leave_a_floor_division(one: Tree, other: Tree, by: int | str) -> None:
    a, b, n = dim_of(one), dim_of(other), dim_of(by)
    if a is None or b is None or n is None:
        return
    assert ((a * n + b) // n).same(a + b // n)
    assert ((a * n + b) % n).same(b % n)
    assert (b // n * n + b % n).same(b)
    assert (b % n // n).same(0)
    assert (b % n % n).same(b % n)


@settings(deadline=None, max_examples=120)
@given(trees)
def test_the_key_is_a_form_of_the_dim_itself(tree: Tree) -> None:
    dim = dim_of(tree)
    if dim is not None:
        assert (dim - dim).same(0)
        assert (2 * dim - dim).same(dim)
        assert (2 * dim).key == (dim + dim).key


polynomials = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner), max_leaves=8
)


@settings(deadline=None, max_examples=100)
@given(polynomials, polynomials)
def test_polynomials_are_the_same_as_in_sympy(one: Tree, other: Tree) -> None:
    def symbolic(tree: Tree) -> Any:
        return compute(tree, lambda x: sympy.Symbol(x) if isinstance(x, str) else sympy.Integer(x))

    a, b = dim_of(one), dim_of(other)
    assert a is not None
    assert b is not None
    assert a.same(b) == (sympy.expand(symbolic(one) - symbolic(other)) == 0)
    square = ("*", ("+", one, other), ("-", one, other))
    apart = ("-", ("*", one, one), ("*", other, other))
    assert sympy.expand(symbolic(square) - symbolic(apart)) == 0
    left, right = dim_of(square), dim_of(apart)
    assert left is not None
    assert right is not None
    assert left.same(right)


def _nested(dens: tuple[int, ...]) -> Any:
    """`(±((p*L+r)//a) + s) // b` for every small p, r, a, s, b: the lengths that two strided layers give."""
    for p, r, a, s, b, sign in itertools.product(
        (-1, 1, 2, 3), range(-3, 4), dens, range(-2, 3), dens, (1, -1)
    ):
        yield lambda x, p=p, r=r, a=a, s=s, b=b, sign=sign: (sign * ((p * x + r) // a) + s) // b


@pytest.mark.parametrize("dens", [(1, 2, 4), (1, 2, 3), (3, 5)])
def test_nested_divisions_are_the_same_exactly_where_all_values_are(dens: tuple[int, ...]) -> None:
    """Sums of floors are periodic but for a line, so two periods of values decide."""
    length = Dim.symbol("L")
    spans = range(2 * (max(dens) ** 2) * 2)
    by_values: dict[tuple[int, ...], set[Any]] = defaultdict(set)
    by_key: dict[Any, set[tuple[int, ...]]] = defaultdict(set)
    for formula in _nested(dens):
        values = tuple(formula(x) for x in spans)
        key = formula(length).key
        by_values[values].add(key)
        by_key[key].add(values)
    assert len(by_key) > 300
    assert all(len(keys) == 1 for keys in by_values.values())
    assert all(len(values) == 1 for values in by_key.values())


SMALL: list[Tree] = ["a", "b", 0, 1, 2, 3]
ONCE: list[Tree] = [(op, x, y) for op in OPERATIONS for x in SMALL for y in SMALL]


@pytest.mark.parametrize("op", list(OPERATIONS))
def test_no_small_expression_is_simplified_wrongly(op: str) -> None:
    """Every (x · y) op z and z op (x · y) over two symbols and small integers, for every small a and b."""
    envs = [{"a": a, "b": b} for a in range(7) for b in range(7)]
    checked = 0
    for inner in ONCE:
        for leaf in SMALL:
            for tree in ((op, inner, leaf), (op, leaf, inner)):
                dim = dim_of(tree)
                expected = [number(tree, env) for env in envs]
                if dim is None or all(value is None for value in expected):
                    continue
                pairs = [(env, value) for env, value in zip(envs, expected, strict=True) if value is not None]
                assert [dim.evaluate(env) for env, _ in pairs] == [value for _, value in pairs], tree
                checked += len(pairs)
    assert checked > 20_000
