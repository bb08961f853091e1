"""Dims: identities of the canonical form, values, spelling, comparisons, and what errors say."""

from __future__ import annotations

import copy
import pickle

import pytest

from nest.errors import DefinitionError
from nest.ir.dim import Dim

B, D, H, L, M, N, X = (Dim.symbol(name) for name in ("B", "D", "Heads", "L", "M", "N", "X"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (L + M, M + L),
        ((L + 1) * (L - 1), L * L - 1),
        ((N * X + M) // N, X + M // N),
        ((3 * L + 5) // 3, L + 1 + 2 // Dim.constant(3)),
        ((4 * L + 2) // 6, (2 * L + 1) // 3),
        ((4 * L + 3) // 6, (2 * L + 1) // 3),
        (L // 2 // 3, L // 6),
        (L // N // M, L // (N * M)),
        (((L + 1) // 2 + 1) // 2, (L + 3) // 4),
        ((((L + 1) // 2 + 1) // 2 + 1) // 2, (L + 7) // 8),
        (((L - 1) // 2 + 1 - 1) // 2 + 1, (L + 3) // 4),
        (((L + 2) // 3 + 2) // 3, (L + 8) // 9),
        (L // N * N + L % N, L),
        (L // 7 * 7 + L % 7, L),
        ((L + N) % N, L % N),
        (L % N // N, Dim.constant(0)),
        (L % 4 % 2, L % 2),
        (X * D // D, X),
        (D * H // H, D),
        (X * D // (2 * D), X // 2),
        (X * (D + 1) // (D + 1), X),
        ((X * (D + 1) + L) // (D + 1), X + L // (D + 1)),
        (-(-L // 2), (L + 1) // 2),
        (-(-L // 5), (L + 4) // 5),
        (-(-L // N), (L + N - 1) // N),
        (-(-L // N) * N - L, -L % N),
        (L - L // 2, (L + 1) // 2),
        (L // 4 + (L + 2) // 4, L // 2),
        (L // -3, -L // 3),
        (L // -N, -L // N),
        (0 * L, Dim.constant(0)),
    ],
)
def test_equal_expressions_have_one_canonical_form(left: Dim, right: Dim) -> None:
    assert left.same(right)
    assert left.key == right.key
    assert hash(left) == hash(right)
    assert left == right


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (D // H * H, D),
        (L // 2 * 2, L),
        (L // 2, (L + 1) // 2),
        (L % 4 % 3, L % 3),
        (L // 2 + M // 2, (L + M) // 2),
        (L // (N + M), L // N),
        (L * M, L + M),
        (1 // N, Dim.constant(0)),
        ((L + N) // (2 * N), L // (2 * N)),
    ],
)
def test_different_expressions_stay_apart(left: Dim, right: Dim) -> None:
    assert not left.same(right)
    assert left.key != right.key


def test_same_accepts_integers() -> None:
    assert (L - L + 3).same(3)
    assert not L.same(3)


def test_factors_that_may_be_negative_are_not_cancelled() -> None:
    """(X*q) // (q*q) has a positive denominator for q = -2, and X // q has not."""
    q = (L - M) // N
    assert (X * q // (q * q)).evaluate({"L": 0, "M": 4, "N": 2, "X": 5}) == -3


def test_symbols_are_those_of_the_canonical_expression() -> None:
    assert ((L + 1) // N * X).symbols() == {"L", "N", "X"}
    assert (L * D // D).symbols() == {"L"}
    assert Dim.constant(4).symbols() == frozenset()


def test_as_symbol_knows_bare_symbols_only() -> None:
    assert L.as_symbol() == "L"
    assert (L * D // D).as_symbol() == "L"
    for dim in (L + 1, 2 * L, L * L, L // 2, -L, Dim.constant(1), L - L):
        assert dim.as_symbol() is None


def test_as_mod_gives_the_operands_and_follows_substitution() -> None:
    remainder = D % H
    operands = remainder.as_mod()
    assert operands is not None
    assert [str(dim) for dim in operands] == ["D", "Heads"]
    renamed = remainder.substitute({"D": 2 * X, "Heads": N}).as_mod()
    assert renamed is not None
    assert renamed[0].same(2 * X)
    assert renamed[1].same(N)
    assert (D // H).as_mod() is None
    assert (D % H + 1).as_mod() is None


def test_value_follows_from_the_symbols() -> None:
    d, heads = Dim.symbol("D", 384), Dim.symbol("Heads", 6)
    assert (d // heads).value == 64
    assert (d * B).value is None
    assert (d * B // B).value == 384
    assert (B - B).value == 0
    assert Dim.constant(5).value == 5
    assert Dim.symbol("Zero", 0).value == 0


def test_a_symbol_cannot_stand_for_two_numbers() -> None:
    with pytest.raises(DefinitionError, match=r"The symbol D stands for 4 and for 5 in one expression"):
        Dim.symbol("D", 4) + Dim.symbol("D", 5)


def test_substitute_is_simultaneous_and_recomputes_values() -> None:
    swapped = (L - M).substitute({"L": M, "M": L})
    assert swapped.same(M - L)
    frames = Dim.symbol("Frames", 3000)
    positions = ((L - 1) // 2 + 1).substitute({"L": frames})
    assert positions.value == 1500
    assert positions.same((frames + 1) // 2)
    assert (D * 2).substitute({"D": Dim.symbol("W")}).value is None


def test_substitute_canonicalises_again() -> None:
    assert (L // N).substitute({"L": 6 * X, "N": Dim.constant(3)}).same(2 * X)
    assert (D // H).substitute({"D": H * X}).same(X)


def test_substitute_renames_symbols_that_cancelled_in_the_text_too() -> None:
    assert str((D * H // H).substitute({"Heads": N})) == "D*N//N"


def test_substitute_leaves_other_dims_alone() -> None:
    dim = L + 1
    assert dim.substitute({"M": N}) is dim


def test_evaluate_rounds_down() -> None:
    assert ((L - 5) // 2).evaluate({"L": 0}) == -3
    assert ((L - 5) % 4).evaluate({"L": 0}) == 3
    assert (L // N + L % N).evaluate({"L": 17, "N": 5}) == 5


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (D // H, "D//Heads"),
        (2 * B, "2*B"),
        (B * 2, "B*2"),
        ((L - 1) // 2 + 1, "(L-1)//2+1"),
        (L - (M - N), "L-(M-N)"),
        (L + (M + N), "L+M+N"),
        (L - (M + N), "L-(M+N)"),
        (L // (M // N), "L//(M//N)"),
        (L // M // N, "L//M//N"),
        (L * (M * N), "L*(M*N)"),
        (L * M % N, "L*M%N"),
        (-L, "-L"),
        (-(L + 1), "-(L+1)"),
        (-(-L), "-(-L)"),  # noqa: B002
        (-L // 2, "-L//2"),
        (L + -M, "L-M"),
        (L * -M, "L*(-M)"),
        (L + -3, "L-3"),
        (L - -3, "L+3"),
        (L * -3, "L*(-3)"),
        (7 - L, "7-L"),
        (17 // L, "17//L"),
        (17 % L, "17%L"),
        (L + 0, "L"),
        (0 + L, "L"),
        (1 * L, "L"),
        (L // 1, "L"),
        (Dim.constant(2) * 3 + 1, "7"),
        (Dim.constant(-2), "-2"),
        (-Dim.constant(2), "-2"),
        (+L, "L"),
    ],
)
def test_text_is_the_spelling(dim: Dim, text: str) -> None:
    assert dim.text == text
    assert str(dim) == repr(dim) == f"{dim}" == text


def test_text_after_substitution_has_the_parentheses_it_needs() -> None:
    dim = (L - 1) // 2 + 1
    assert str(dim.substitute({"L": M + N})) == "(M+N-1)//2+1"
    assert str((2 * L).substitute({"L": M + N})) == "2*(M+N)"
    assert str((L // N).substitute({"L": D, "N": H * X})) == "D//(Heads*X)"
    assert str((L + M).substitute({"M": Dim.constant(-2)})) == "L-2"


def test_comparisons_with_integers_are_by_value() -> None:
    d = Dim.symbol("D", 4)
    assert d == 4
    assert d == d
    assert not d.__eq__(5)
    assert d != 5
    assert not d.__ne__(4)
    assert 3 < d <= 4
    assert d >= 4
    assert d > 3
    assert not (d < 4)


def test_dims_are_equal_as_keys_of_a_dict() -> None:
    table = {(L + 1) // 2: "half", Dim.constant(3): "three"}
    assert table[L - L // 2] == "half"
    assert table[Dim.constant(1) + 2] == "three"
    assert L in [M - M + L]


def test_a_dim_is_not_equal_to_other_things() -> None:
    assert (L == "L") is False
    assert (L != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        L < "L"  # type: ignore[operator]  # noqa: B015


def test_integers_stand_where_an_index_does() -> None:
    d = Dim.symbol("D", 3)
    assert list(range(d)) == [0, 1, 2]
    assert int(d) == 3
    assert bool(d)
    assert not Dim.symbol("Zero", 0)


@pytest.mark.parametrize("make", [lambda: L * 0.5, lambda: 0.5 + L, lambda: L - "x", lambda: None // L])
def test_arithmetic_with_other_types_is_a_type_error(make: object) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        make()  # type: ignore[operator]


def test_dims_survive_copies_and_pickles() -> None:
    dim = (Dim.symbol("D", 384) // H) % 5
    for other in (copy.copy(dim), copy.deepcopy(dim), pickle.loads(pickle.dumps(dim))):
        assert other.same(dim)
        assert other.text == dim.text
        assert other.substitute({"Heads": Dim.constant(6)}).value == 4


def check_message(make: object, *parts: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()  # type: ignore[operator]
    for part in parts:
        assert part in str(caught.value)


def test_true_division_says_what_to_use() -> None:
    check_message(lambda: L / 2, "L/2 is not a dim: / gives a fraction. Use // for floor division, L//2.")
    check_message(lambda: 6 / L, "6/L is not a dim", "6//L")


def test_division_by_less_than_one_is_refused() -> None:
    zero = Dim.symbol("Stride", 0)
    check_message(lambda: L // 0, "The dim L//0 divides by 0, and must divide by 1 or more.")
    check_message(lambda: L % 0, "The dim L%0 divides by 0")
    check_message(lambda: L // zero, "The dim L//Stride divides by Stride = 0")
    check_message(lambda: L // (zero - 2), "divides by Stride-2 = -2")
    check_message(lambda: (L // N).substitute({"N": Dim.constant(0)}), "The dim L//0 divides by 0")
    check_message(lambda: (L // N).evaluate({"L": 1, "N": 0}), "The dim L//N divides by 0")


def test_evaluate_names_the_symbol_without_a_value() -> None:
    check_message(
        lambda: (L // N).evaluate({"L": 6, "A": 1}),
        "The dim L//N cannot be evaluated: N has no value. Known values: A = 1, L = 6.",
    )
    check_message(lambda: L.evaluate({}), "L has no value. Known values: none.")


def test_a_symbolic_dim_is_no_integer() -> None:
    check_message(lambda: range(B * X), "The dim B*X is no integer before the call: B and X have no value.")
    check_message(lambda: int(B), "B has no value", "pass the dim itself")


def test_a_symbolic_dim_decides_no_branch() -> None:
    for question in (lambda: bool(B), lambda: bool(B == 3), lambda: bool(B <= D), lambda: B in [D]):
        check_message(question, "cannot decide a branch", "require")


def test_equal_values_of_different_expressions_are_a_coincidence() -> None:
    one, other = Dim.symbol("A", 4), Dim.symbol("C", 4)
    check_message(lambda: bool(one == other), "coincidence of this checkpoint", "self.require(A == C)")
    assert one != Dim.symbol("C", 5)


def test_symbols_have_names_and_sizes() -> None:
    check_message(lambda: Dim.symbol("2x"), "A dim cannot be named '2x'")
    check_message(lambda: Dim.symbol("D", -1), "The dim D cannot be -1: a size is 0 or more.")
