"""Dims read from annotations: grammar, spelling, and errors that point at the column."""

from __future__ import annotations

import pytest

from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.parse import parse


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "a",
        "a+b*c",
        "(a+b)*c",
        "a-b-c",
        "a-(b-c)",
        "a//b*b+a%b",
        "a*b//c%4",
        "a*(b//c)",
        "-a//b",
        "-(a//b)",
        "a//-2",
        "--a",
        "-2",
        "2-(-3)",
        "(a-1)//2+1",
    ],
)
def test_precedence_is_that_of_python(text: str) -> None:
    env = {"a": 17, "b": 7, "c": 5}
    dim = parse(text, Dim.symbol)
    assert dim.evaluate(env) == eval(text, {}, env)
    assert dim.text == text


def test_the_text_stays_as_written() -> None:
    for text in ("(Frames-1)//2+1", "((L))", "2*3", "L + 1", "L*1", "1*L+0"):
        assert parse(text, Dim.symbol).text == text
    assert parse("  L+1 ", Dim.symbol).text == "L+1"


def test_the_text_stays_when_names_stand_for_other_dims() -> None:
    width = Dim.symbol("Width", 8)
    dim = parse("D//Heads", lambda name: {"D": 2 * width, "Heads": Dim.constant(4)}[name])
    assert dim.text == "D//Heads"
    assert dim.value == 4
    assert dim.same(width // 2)


def test_a_written_dim_keeps_its_words_as_an_operand() -> None:
    positions = parse("(L - 1)//2 + 1", Dim.symbol)
    assert str(positions * 2) == "((L - 1)//2 + 1)*2"
    assert str(positions + 1) == "(L - 1)//2 + 1+1"
    assert str(positions.substitute({"L": Dim.symbol("M") + 2})) == "(M+2-1)//2+1"
    assert positions.substitute({"Other": Dim.symbol("M")}).text == "(L - 1)//2 + 1"


def test_a_written_name_keeps_its_precedence() -> None:
    total = parse("N", lambda name: Dim.symbol("A") + Dim.symbol("B"))
    assert str(total * 2) == "N*2"
    assert str(total.substitute({"A": Dim.symbol("C")}) * 2) == "(C+B)*2"


def test_a_written_remainder_has_its_operands() -> None:
    operands = parse("D % Heads", Dim.symbol).as_mod()
    assert operands is not None
    assert [str(dim) for dim in operands] == ["D", "Heads"]


@pytest.mark.parametrize(
    ("text", "why", "column"),
    [
        ("(Frames-1)/2", "'/' gives a fraction; use '//' for floor division", 10),
        ("D**2", "a dim has no powers; write the product", 1),
        ("D//", "expected a name, an integer or '(', found the end", 3),
        ("(D+1", "expected ')', found the end", 4),
        ("D+)", "expected a name, an integer or '(', found ')'", 2),
        ("D E", "expected an operator, found 'E'", 2),
        ("2D", "expected an operator, found 'D'", 1),
        ("D+*2", "expected a name, an integer or '(', found '*'", 2),
        ("D$", "expected an operator, found '$'", 1),
        ("D 1.5", "expected an operator, found '1'", 2),
        ("D)", "expected an operator, found ')'", 1),
        ("", "expected a name, an integer or '(', found the end", 0),
    ],
)
def test_errors_point_at_the_column(text: str, why: str, column: int) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse(text, Dim.symbol)
    assert str(caught.value) == f"Not a dim: {why}.\n    {text}\n    {' ' * column}^"


def test_an_unknown_name_is_pointed_at() -> None:
    with pytest.raises(DefinitionError) as caught:
        parse("B*Heds", {"B": Dim.symbol("B")}.__getitem__)
    assert str(caught.value) == "Not a dim: nothing here is named 'Heds'.\n    B*Heds\n      ^"


def test_an_error_of_the_lookup_passes_through() -> None:
    def lookup(name: str) -> Dim:
        raise DefinitionError(f"{name} is an element type")

    with pytest.raises(DefinitionError, match="T is an element type"):
        parse("T+1", lookup)


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(DefinitionError, match="The dim L//0 divides by 0"):
        parse("L//0", Dim.symbol)
