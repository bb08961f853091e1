"""Printed expressions broken into lines stay one statement, and the same expression."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.backends.source.expr import Attr, Binary, Call, Expr, Index, Listing, Name, Unary, laid_out, literal

NAMES = st.sampled_from(["x", "weights", "attended", "self.decoder_positions"]).map(Name)


def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "<", "==", "&", "|", "@", "**"])
    calls = st.builds(Call, st.sampled_from(["torch.where", "f"]).map(Name), st.lists(inner, max_size=3))
    arguments = st.lists(inner, max_size=2)
    bound = st.builds(Attr, inner, st.sampled_from(["reshape", "clamp"]))
    methods = st.builds(Call, bound, arguments)
    return st.one_of(
        st.builds(Binary, operators, inner, inner),
        st.builds(Unary, st.sampled_from(["-", "~"]), inner),
        calls,
        methods,
        st.builds(Index, inner, st.just(":, 0")),
        st.builds(Listing, st.lists(inner, max_size=3)),
    )


@settings(deadline=None)
@given(
    st.recursive(NAMES | st.sampled_from([0.5, 2.0]).map(literal), grown, max_leaves=25),
    st.sampled_from([20, 60, 100]),
)
def test_lines_are_one_statement(expr: Expr, width: int) -> None:
    (statement,) = ast.parse("\n".join(laid_out("h = ", expr, width))).body
    assert isinstance(statement, ast.Assign)
    assert ast.dump(statement.value) == ast.dump(ast.parse(expr.flat(), mode="eval").body)


@pytest.mark.parametrize("op", ["-", "+", "*"])
def test_a_broken_call_at_the_left_is_bracketed(op: str) -> None:
    """The first line ends with an open bracket, which closes before the operator."""
    long = Call(Name("torch.take_along_dim"), [Name("a" * 30), Name("b" * 30)])
    lines = laid_out("h = ", Binary(op, long, literal(1)), 40)
    assert lines[0] == "h = ("
    assert len(ast.parse("\n".join(lines)).body) == 1
