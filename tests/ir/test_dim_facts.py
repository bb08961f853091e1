"""Known divisibilities: what they make equal, and what they must not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.ir.dim import Dim, simplify

B, D, G, H, K, L, X = (Dim.symbol(name) for name in ("B", "D", "G", "Heads", "K", "L", "X"))
Fact = tuple[Dim, Dim | int]

HEADS: list[Fact] = [(D, H)]
GROUPED: list[Fact] = [(D, H), (H, K)]
ROPE: list[Fact] = [(D, H), (D // H, 2)]


@pytest.mark.parametrize(
    ("dim", "facts", "expected"),
    [
        (H * (D // H), HEADS, D),
        (D // H * H, HEADS, D),
        (3 * H * (D // H) * X + 1, HEADS, 3 * D * X + 1),
        (D % H, HEADS, Dim.constant(0)),
        (2 * D % H, HEADS, Dim.constant(0)),
        (B * D // H, HEADS, B * (D // H)),
        ((B * D + L) // H, HEADS, B * (D // H) + L // H),
        (D // (D // H), HEADS, H),
        (D // H // 2 * 2, ROPE, D // H),
        (D // H // 2 * H * 2, ROPE, D),
        (D // K * K, GROUPED, D),
        (H // K * (D // H) * K, GROUPED, D),
        (D // K, GROUPED, H // K * (D // H)),
        (L // 2 * 2, [(L, 2)], L),
        ((L + 1) // 2, [(L, 2)], L // 2),
        (3 * L // 2, [(L, 2)], L + L // 2),
        ((L + 1) // 2 * 2, [(L + 1, 2)], L + 1),
        (L * X // 6 * 6, [(L, 6)], L * X),
        (12 // H * H, [(Dim.constant(12), H)], Dim.constant(12)),
    ],
)
def test_facts_decide(dim: Dim, facts: list[Fact], expected: Dim) -> None:
    assert simplify(dim, facts).same(simplify(expected, facts))


@pytest.mark.parametrize(
    ("dim", "facts", "expected"),
    [
        (H * (D // H), [], D),
        (H * (D // H), [(H, D)], D),
        (L // 4 * 4, [(L, 2)], L),
        (K * (D // K), HEADS, D),
        (D // H // 2 * 2, HEADS, D // H),
    ],
)
def test_other_facts_do_not(dim: Dim, facts: list[Fact], expected: Dim) -> None:
    assert not simplify(dim, facts).same(simplify(expected, facts))


def test_the_text_stays_where_nothing_changes() -> None:
    dim = (L - 1) // 2 + 1
    assert simplify(dim, HEADS) is dim
    assert str(simplify(H * (D // H), HEADS)) == "D"


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (H * (D // H) - 1, "D-1"),
        (1 - H * (D // H), "1-D"),
        (-2 * H * (D // H), "-2*D"),
        (-X * H * (D // H), "-D*X"),
        (D % H - (L // 2) * X, "-X*(L//2)"),
        (D % H - L // 2, "-(L//2)"),
        (D % H - 3, "-3"),
        (D % H + (L + 1) // 2 * X, "X*((L+1)//2)"),
    ],
)
def test_a_new_expression_is_spelled_out(dim: Dim, text: str) -> None:
    assert str(simplify(dim, HEADS)) == text


def test_values_are_carried() -> None:
    d, heads = Dim.symbol("D", 384), Dim.symbol("Heads", 6)
    assert simplify(heads * (d // heads), [(d, heads)]).value == 384
    assert simplify(B * d // heads, [(d, heads)]).value is None


SIZES = st.integers(1, 6)


@settings(deadline=None, max_examples=150)
@given(
    data=st.data(),
    k=SIZES,
    group=SIZES,
    half=SIZES,
    extra=st.fixed_dictionaries({"L": st.integers(0, 20), "X": st.integers(1, 9)}),
)
def test_the_value_stays_wherever_the_facts_hold(
    data: st.DataObject, k: int, group: int, half: int, extra: dict[str, int]
) -> None:
    env = {"K": k, "Heads": k * group, "D": 2 * half * k * group, **extra}
    facts: list[Fact] = [(D, H), (H, K), (D // H, 2)]
    parts = [D, H, K, L, X, D // H, H // K, D // K, D // H // 2, Dim.constant(1), Dim.constant(2)]
    dim = data.draw(st.sampled_from(parts))
    for _ in range(data.draw(st.integers(1, 5))):
        op = data.draw(st.sampled_from(["+", "*", "//", "%"]))
        part = data.draw(st.sampled_from(parts))
        if op in ("//", "%"):
            if part.evaluate(env) < 1:
                continue
            dim = dim // part if op == "//" else dim % part
        else:
            dim = dim + part if op == "+" else dim * part
    assert simplify(dim, facts).evaluate(env) == dim.evaluate(env)
