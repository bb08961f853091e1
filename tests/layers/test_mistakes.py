"""Mistakes in definitions, each refused when the definition is elaborated, and what the author is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import DefinitionError
from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Fill,
    Float,
    Int32,
    Linear,
    Param,
    State,
    Tensor,
    concat,
    elaborate,
    entry,
    full,
    linear,
    merge_heads,
    split_heads,
    while_loop,
)


class Root(Block):
    D: Dim
    Heads: Dim
    T: DType


def refused(root: type[Block], **generics: Any) -> str:
    """The message that a definition is refused with."""
    with pytest.raises(DefinitionError) as caught:
        elaborate(root, **{"D": 8, "Heads": 2, "T": "f32", **generics})
    return str(caught.value)


def line_of(text: str) -> str:
    """`layers/test_mistakes.py:N` of the only line of this file that starts with this text."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    lines = [n for n, line in enumerate(source, 1) if line.strip() == text]
    assert len(lines) == 1, f"{text!r} stands on lines {lines}"
    return f"layers/test_mistakes.py:{lines[0]}"


class WrongReshape(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        B, N, D = x.shape
        return x.reshape(B, N, self.Heads, D).reshape(B, N, D)


def test_wrong_reshape() -> None:
    message = refused(WrongReshape)
    where = line_of("return x.reshape(B, N, self.Heads, D).reshape(B, N, D)")
    assert message.startswith(f"{where}, in WrongReshape.go: reshape keeps the number of elements")
    assert "B*N*D is not B*N*Heads*D" in message
    assert "x      T[B, N, D]" in message
    assert "shape  T[B, N, Heads, D]" in message
    assert "where N: axis 1 of argument 'x' of WrongReshape.go" in message
    assert "where Heads: generic of WrongReshape, 2, bound at layers/test_mistakes.py:" in message
    assert "at    return x.reshape(B, N, self.Heads, D).reshape(B, N, D)" in message


class Undivided(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return merge_heads(split_heads(x, self.Heads))


def test_a_quotient_needs_its_divisibility_stated() -> None:
    message = refused(Undivided)
    assert "in Undivided.go: reshape keeps the number of elements" in message
    assert "D//Heads rounds down: state in build what divides it" in message
    assert "at    return x.reshape(B, N, heads, D // heads)" in message


class Swapped(Root):
    def build(self) -> None:
        self.require(self.D % self.Heads == 0)

    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return merge_heads(split_heads(x, self.Heads).permute(0, 2, 1, 3))


def test_swapped_axes() -> None:
    message = refused(Swapped)
    where = line_of("return merge_heads(split_heads(x, self.Heads).permute(0, 2, 1, 3))")
    assert message.startswith(f"{where}, in Swapped.go: Result does not match its annotation.")
    assert "annotated  T[B, N, D]" in message
    assert "returned   T[B, Heads, N*(D//Heads)]" in message
    assert "Axis 1: N and Heads." in message


class MissingCast(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return x + full((self.D,), 1.0, "f32")


def test_a_missing_cast_even_where_t_is_f32() -> None:
    message = refused(MissingCast)
    assert line_of('return x + full((self.D,), 1.0, "f32")') in message
    assert "add takes one element type, and got T for 'a' and f32 for 'b'" in message
    assert "cast(x, dtype) converts; nothing is converted by itself." in message


class WrongState(Root):
    def build(self) -> None:
        self.cache = State("Batch Heads Capacity D", self.T, write_axis=2)

    @entry
    def go(self, x: Float[Tensor, "Batch N D"]) -> Float[Tensor, "Batch N D"]:
        self.cache.update(x.reshape(*x.shape[:1], 1, *x.shape[1:]), 0)
        return x


def test_a_state_written_with_the_wrong_shape() -> None:
    message = refused(WrongState)
    assert line_of("self.cache.update(x.reshape(*x.shape[:1], 1, *x.shape[1:]), 0)") in message
    assert "The state 'self.cache' is updated with a value that fits it on no slot" in message
    assert "state  T[Batch, Heads, Capacity, D]" in message
    assert "value  T[Batch, 1, N, D]" in message
    assert "Axis 1 differs: Heads and 1." in message
    assert "where Capacity: symbol of the session" in message


class AssignedState(Root):
    def build(self) -> None:
        self.cache = State("Batch D", self.T)

    @entry
    def go(self, x: Int32[Tensor, "Batch D"]) -> Int32[Tensor, "Batch D"]:
        return self.cache.assign(x)


def test_a_state_assigned_another_type() -> None:
    message = refused(AssignedState)
    assert "The state 'self.cache' is assigned a value of another type." in message
    assert "The element types differ: T and i32" in message


class Stale(Root):
    def build(self) -> None:
        self.cache = State("Batch Capacity D", self.T, write_axis=1)

    @entry
    def go(self, x: Float[Tensor, "Batch N D"]) -> Float[Tensor, "Batch Capacity D"]:
        before = self.cache.read()
        self.cache.update(x, 0)
        return before


def test_a_view_used_after_the_state_was_written() -> None:
    message = refused(Stale)
    assert (
        f"{line_of('return before')}, in Stale.go: A view of the state 'self.cache' is used after" in message
    )
    assert "Use what the last update returned, or read() the state again." in message


class UnboundSymbol(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B M D"]:
        return x


def test_a_symbol_that_nothing_binds() -> None:
    message = refused(UnboundSymbol)
    assert "UnboundSymbol.go: the result T[B, M, D] has the symbol 'M', which no argument binds" in message


class Child(Block):
    D: Dim
    Inner: Dim
    T: DType

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return x


class UnboundGeneric(Root):
    def build(self) -> None:
        self.child = Child(self.D, T=self.T)  # type: ignore[call-arg]

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return self.child.forward(x)


def test_a_generic_left_unbound() -> None:
    message = refused(UnboundGeneric)
    assert message.startswith(line_of("self.child = Child(self.D, T=self.T)  # type: ignore[call-arg]"))
    assert "Child leaves Inner unbound; given: D=D, T=T." in message


class WrongResult(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B D N"]:
        return x * 2.0


def test_a_result_that_does_not_match_its_annotation() -> None:
    message = refused(WrongResult)
    assert f"{line_of('return x * 2.0')}, in WrongResult.go: Result does not match its annotation." in message
    assert "annotated  T[B, D, N]" in message
    assert "returned   T[B, N, D]" in message


class Branch(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        if x.shape[1] > 3:
            return x
        return x + x


def test_a_branch_on_a_symbolic_dim() -> None:
    message = refused(Branch)
    assert message.startswith(f"{line_of('if x.shape[1] > 3:')}: 'N > 3' cannot decide a branch")
    assert "self.require(N > 3)" in message


class TensorBranch(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return x if x > 0 else -x


def test_a_branch_on_a_tensor() -> None:
    assert "A tensor cannot decide a branch: a method is traced once, without data." in refused(TensorBranch)


class IntegerDivision(Root):
    @entry
    def go(self, x: Int32[Tensor, "B N"]) -> Int32[Tensor, "B N"]:
        return x / 2


def test_division_of_integers() -> None:
    message = refused(IntegerDivision)
    assert "/ divides floats, and 'a' is i32." in message
    assert "Use // for floor division of integers, or cast to a float type." in message


class NumpyArray(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return x * np.ones(8)


def test_a_numpy_array_in_an_expression() -> None:
    assert "mul takes a tensor for 'b', and got numpy.ndarray." in refused(NumpyArray)


class Undefined(Root):
    def build(self) -> None:
        self.fc = Linar(self.D, self.D, self.T)  # type: ignore[name-defined]

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return x


def test_a_slip_in_build_is_told_with_its_line() -> None:
    message = refused(Undefined)
    assert re.match(
        r"layers/test_mistakes.py:\d+, in Undefined.build: NameError: name 'Linar' is not defined", message
    )
    assert "at    self.fc = Linar(self.D, self.D, self.T)" in message


class UndefinedInMethod(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return x + undefined  # type: ignore[name-defined,no-any-return]


def test_a_slip_in_a_method_is_told_with_its_line() -> None:
    message = refused(UndefinedInMethod)
    assert "in UndefinedInMethod.go: NameError: name 'undefined' is not defined" in message


class NoResult(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"]):  # type: ignore[no-untyped-def]
        return x


def test_a_missing_result_annotation() -> None:
    assert "NoResult.go: its result has no tensor annotation" in refused(NoResult)


class NoReturn(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:  # type: ignore[return]
        x * 2.0


def test_a_forgotten_return() -> None:
    message = refused(NoReturn)
    assert "NoReturn.go returned None; its annotation promises T[B, D]." in message
    assert "Is a `return` missing?" in message


class Habits(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return self.habit(x)  # type: ignore[no-any-return]

    def habit(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        (lambda self, x: x @ x, "Use linear(x, weight) for x @ weight.T"),
        (lambda self, x: x.relu(), "Tensors have no method 'relu': it is a function, relu(x)."),
        (lambda self, x: x.view(2, 4), "Tensors have no attribute 'view': write x.reshape(...)"),
        (lambda self, x: x.T, "Tensors have no attribute 'T': write x.permute(1, 0)."),
        (
            lambda self, x: x.reshape(-1, 2),
            "There is no -1: a size that is worked out is a size that is not checked.",
        ),
    ],
)
def test_habits_from_elsewhere(habit: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Habits, "habit", habit)
    assert told in refused(Habits)


def test_a_constructor_in_place_of_build() -> None:
    with pytest.raises(
        DefinitionError, match=r"Constructed defines __init__; a block makes its members in build"
    ):

        class Constructed(Root):
            def __init__(self) -> None: ...


class BadParam(Root):
    def build(self) -> None:
        self.weight = Param("Outt D", self.T)

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return x


def test_axes_of_a_parameter_are_told_with_its_line() -> None:
    message = refused(BadParam)
    assert message.startswith(line_of('self.weight = Param("Outt D", self.T)'))
    assert "in the axes 'Outt D'" in message


class IntAnnotated(Root):
    Out: int

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return x


def test_a_size_annotated_int() -> None:
    assert "IntAnnotated annotates 'Out' as int; a generic is annotated Dim or DType" in refused(
        IntAnnotated, Out=3
    )


class UnknownMethod(Root):
    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return x.softmacks(-1)  # type: ignore[no-any-return]


def test_a_method_that_tensors_do_not_have() -> None:
    assert "Tensors have no attribute 'softmacks' (did you mean 'softmax'?)." in refused(UnknownMethod)


class Coincidence(Root):
    Inner: Dim

    def build(self) -> None:
        self.fc = Linear(self.Inner, self.D, self.T)

    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self.fc.forward(x)


def test_sizes_that_are_equal_only_in_this_checkpoint() -> None:
    message = refused(Coincidence, Inner=8)
    assert "Linear.forward: axis 2 of 'x' must be Inner, and is D." in message
    assert (
        "Both are 8 here, by coincidence: if they must be equal, state self.require(self.Inner == self.D)"
        in message
    )


class Stated(Coincidence):
    def build(self) -> None:
        self.require(self.Inner == self.D)
        super().build()


def test_an_equality_that_is_stated_is_known() -> None:
    assert elaborate(Stated, D=8, Heads=2, T="f32", Inner=8).entries["go"].results


def test_a_stated_equality_that_is_false() -> None:
    message = refused(Stated, Inner=16)
    assert "Stated requires Inner == D, which is false here: Inner is 16, D is 8" in message
    assert re.search(r"bound at layers/test_mistakes.py:\d+", message)


class TransposedWeight(Root):
    def build(self) -> None:
        self.weight = Param("Heads D", self.T)

    @entry
    def go(self, x: Float[Tensor, "B N Heads"]) -> Float[Tensor, "B N D"]:
        return linear(x, self.weight)


def test_a_weight_the_wrong_way_round() -> None:
    message = refused(TransposedWeight)
    assert "linear: the last axis of x and of weight must be equal: Heads and D." in message


class Inner(Block):
    D: Dim
    T: DType

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return concat([x, x], axis=1)


class Outer(Block):
    D: Dim
    T: DType

    def build(self) -> None:
        self.inner = Inner(self.D, self.T)

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return self.inner.forward(x)


class Nested(Root):
    def build(self) -> None:
        self.layers = [Outer(self.D, self.T) for _ in range(2)]

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        for layer in self.layers:
            x = layer.forward(x)
        return x


def test_the_path_of_the_block_is_named() -> None:
    message = refused(Nested)
    assert "in Inner.forward (layers.0.inner): Result does not match its annotation." in message
    assert "returned   T[B, D+D]" in message or "returned   T[B, 2*D]" in message


class SetState(Root):
    def build(self) -> None:
        self.cache = State("Batch D", self.T)

    @entry
    def go(self, x: Float[Tensor, "Batch D"]) -> Float[Tensor, "Batch D"]:
        self.cache = x  # type: ignore[assignment]
        return x


def test_a_state_set_like_an_attribute() -> None:
    message = refused(SetState)
    assert "The state 'self.cache' was assigned with '='." in message
    assert "Write self.cache.assign(value)" in message


class SessionParameter(Root):
    def build(self) -> None:
        self.table = Param("Capacity D", self.T)

    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return x


def test_a_parameter_of_the_session_s_size() -> None:
    assert "the parameter 'table' of SessionParameter depends on Capacity" in refused(SessionParameter)


class UnknownFill(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"], n: Int32[Tensor, "B"] = Fill("S")) -> Float[Tensor, "B D"]:
        return x


def test_a_fill_that_names_no_symbol() -> None:
    assert "Fill('S') names no symbol of the method" in refused(UnknownFill)


class HalfAnnotated(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"], scale: float) -> Float[Tensor, "B D"]:
        return x * scale


def test_an_argument_without_an_annotation() -> None:
    assert "argument 'scale' has no tensor annotation" in refused(HalfAnnotated)


class Closure(Root):
    @entry
    def go(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        def body(block: Any, y: Tensor) -> tuple[Tensor, ...]:
            return (y + x,)

        return while_loop(self, body, body, [x], max_trips=2)[0]


def test_a_loop_body_that_closes_over_a_tensor() -> None:
    assert "is a plain function or method, not a closure: it captures x." in refused(Closure)


class BadAxes(Root):
    @entry
    def go(self, x: Float[Tensor, "B D/2"]) -> Float[Tensor, "B D"]:
        return x


def test_axes_that_are_no_dims() -> None:
    message = refused(BadAxes)
    assert "'/' gives a fraction; use '//' for floor division" in message
    assert "^" in message


class DeclaresBatch(Block):
    Batch: Dim
    T: DType

    @entry
    def go(self, x: Float[Tensor, "Batch"]) -> Float[Tensor, "Batch"]:
        return x


def test_batch_belongs_to_the_session() -> None:
    with pytest.raises(DefinitionError, match="declares the generic 'Batch', which belongs to the session"):
        elaborate(DeclaresBatch, Batch=1, T="f32")


class FalseRule(Root):
    def build(self) -> None:
        self.require(Capacity <= self.D)
        self.cache = State("Batch Capacity D", self.T, write_axis=1)

    @entry
    def go(self, x: Float[Tensor, "Batch D"]) -> Float[Tensor, "Batch D"]:
        return x


def test_unknown_generics_are_refused_with_what_there_is() -> None:
    message = refused(FalseRule, Hedas=3)
    assert "FalseRule has no generic 'Hedas' (did you mean 'Heads'?); it has D, Heads, T." in message
