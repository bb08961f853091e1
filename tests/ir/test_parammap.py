"""ParamMap: shapes, normal form, composition and inverse, against numpy as the meaning of an expression."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.errors import BindingError
from nest.ir._param_simplify import lossless
from nest.ir.parammap import (
    Cast,
    Concat,
    Expr,
    ParamMap,
    Reshape,
    Slice,
    Source,
    TensorSpec,
    Transpose,
    Zeros,
)
from nest.weights.evaluate import evaluate

_X = Source("x")
_TYPES = {"x": TensorSpec((6, 4), "f32"), "y": TensorSpec((6, 4), "f32"), "b": TensorSpec((6,), "f32")}


def _tensors(types: dict[str, TensorSpec]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {name: generator.normal(size=spec.shape).astype(np.float32) for name, spec in types.items()}


def _value(expression: Expr, tensors: dict[str, np.ndarray]) -> np.ndarray:
    types = {name: TensorSpec(array.shape, f"f{8 * array.itemsize}") for name, array in tensors.items()}
    return evaluate(expression, types, tensors.__getitem__)


def _evaluate_all(mapping: ParamMap, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: _value(expression, tensors) for name, expression in mapping.expressions.items()}


class TestInference:
    @pytest.mark.parametrize(
        ("expression", "shape"),
        [
            (Slice(_X, 1, 1, 3), (6, 2)),
            (Transpose(_X, (1, 0)), (4, 6)),
            (Reshape(_X, (2, 3, 4)), (2, 3, 4)),
            (Concat((_X, Source("y")), 1), (6, 8)),
            (Zeros((5,), "f32"), (5,)),
            (Cast(_X, "f16"), (6, 4)),
        ],
    )
    def test_shape(self, expression: Expr, shape: tuple[int, ...]) -> None:
        assert expression.infer(_TYPES).shape == shape
        assert _value(expression, _tensors(_TYPES)).shape == shape

    @pytest.mark.parametrize(
        ("expression", "words"),
        [
            (Source("z"), "no tensor 'z'"),
            (Slice(_X, 2, 0, 1), "x[:, :, 0:1]: there is no axis 2; the operand is f32[6, 4]"),
            (Slice(_X, 0, 4, 7), "x[4:7]: 4:7 is outside axis 0; the operand is f32[6, 4]"),
            (Transpose(_X, (0, 0)), "x.transpose(0, 0): (0, 0) does not name each of its axes once"),
            (Reshape(_X, (5, 5)), "x.reshape(5, 5): the shapes hold different numbers of elements"),
            (Concat((_X, Source("b")), 0), "the parts differ: x is f32[6, 4], b is f32[6]"),
            (Concat((), 0), "nothing to join"),
            (Cast(_X, "f31"), "unknown dtype 'f31'"),
            (Zeros((-1,), "f32"), "not a shape and a dtype"),
        ],
    )
    def test_refusal(self, expression: Expr, words: str) -> None:
        with pytest.raises(BindingError) as caught:
            expression.infer(_TYPES)
        assert words in str(caught.value)


class TestNormalForm:
    @pytest.mark.parametrize(
        ("expression", "text"),
        [
            (Slice(Slice(_X, 0, 1, 5), 0, 1, 3), "x[2:4]"),
            (Slice(_X, 0, 0, 6), "x"),
            (Transpose(Transpose(_X, (1, 0)), (1, 0)), "x"),
            (Slice(Transpose(_X, (1, 0)), 0, 1, 2), "x[:, 1:2].transpose(1, 0)"),
            (Slice(Concat((_X, Source("y")), 0), 0, 6, 12), "y"),
            (Slice(Concat((_X, Source("y")), 0), 0, 4, 8), "concat(x[4:6], y[0:2], axis=0)"),
            (Concat((Slice(_X, 0, 0, 2), Slice(_X, 0, 2, 6)), 0), "x"),
            (Concat((Zeros((2,), "f32"), Zeros((3,), "f32")), 0), "zeros(5, f32)"),
            (Reshape(Reshape(_X, (24,)), (6, 4)), "x"),
            (Slice(Reshape(_X, (3, 2, 4)), 0, 1, 2), "x[2:4].reshape(1, 2, 4)"),
            (Slice(Reshape(_X, (3, 2, 4)), 1, 0, 1), "x.reshape(3, 2, 4)[:, 0:1]"),
            (Cast(Cast(_X, "f64"), "f16"), "x.cast(f16)"),
            (Cast(Cast(_X, "f16"), "f32"), "x.cast(f16).cast(f32)"),
            (Slice(Cast(_X, "f16"), 0, 0, 1), "x[0:1].cast(f16)"),
        ],
    )
    def test_text(self, expression: Expr, text: str) -> None:
        assert str(ParamMap({"p": expression}).simplify(_TYPES)) == f"p = {text}"


class TestViews:
    def test_slices_transposes_and_reshapes_do_not_copy(self) -> None:
        tensors = _tensors(_TYPES)
        value = _value(Slice(Transpose(Reshape(_X, (2, 3, 4)), (0, 2, 1)), 1, 1, 3), tensors)
        assert np.shares_memory(value, tensors["x"])

    def test_concat_of_casts_and_zeros(self) -> None:
        tensors = _tensors(_TYPES)
        expression = Cast(Concat((Source("b"), Zeros((2,), "f32")), 0), "f64")
        value = _value(expression, tensors)
        assert value.dtype == np.float64
        np.testing.assert_array_equal(value, np.concatenate([tensors["b"], np.zeros(2)]))

    def test_a_cast_rounds_before_a_wider_one(self) -> None:
        tensors = {"x": np.array([1.0 + 2.0**-20], np.float32)}
        value = _value(Cast(Cast(_X, "f16"), "f32"), tensors)
        assert value.tolist() == [1.0]


class TestInverse:
    def test_packed_projections_with_an_absent_key_bias(self) -> None:
        types = {name: TensorSpec((4,), "f32") for name in ("q", "v")}
        packed = ParamMap({"qkv": Concat((Source("q"), Zeros((4,), "f32"), Source("v")), 0)})
        assert str(packed.inverse(types)) == "q = qkv[0:4]\nv = qkv[8:12]"

    def test_a_fused_tensor_that_was_split(self) -> None:
        types = {"c_attn": TensorSpec((4, 12), "f32")}
        split = ParamMap(
            {
                name: Transpose(Slice(Source("c_attn"), 1, 4 * index, 4 * index + 4), (1, 0))
                for index, name in enumerate("qkv")
            }
        )
        assert str(split.inverse(types)) == "c_attn = concat(q, k, v, axis=0).transpose(1, 0)"

    def test_rows_interleaved_by_head(self) -> None:
        types = {"qkv": TensorSpec((2 * 3 * 5, 7), "f32")}
        heads = Reshape(Source("qkv"), (2, 3, 5, 7))
        parts = {
            name: Reshape(Slice(heads, 1, index, index + 1), (10, 7)) for index, name in enumerate("qkv")
        }
        _assert_round_trip(ParamMap(parts), types)

    def test_a_tie_is_taken_from_the_first(self) -> None:
        tied = ParamMap({"embedding": _X, "head": _X})
        assert str(tied.inverse(_TYPES)) == "x = embedding"

    def test_a_part_that_no_parameter_holds(self) -> None:
        with pytest.raises(BindingError, match=r"hold \[0:4, 0:4\] of x\[6, 4\], not the whole"):
            ParamMap({"p": Slice(_X, 0, 0, 4)}).inverse(_TYPES)

    def test_a_cast_that_loses_values(self) -> None:
        with pytest.raises(
            BindingError, match=r"x\.cast\(f16\) cannot be undone: f16 does not hold every f32"
        ):
            ParamMap({"p": Cast(_X, "f16")}).inverse(_TYPES)


def test_a_name_that_the_first_map_does_not_make() -> None:
    with pytest.raises(BindingError, match="no parameter 'q'"):
        ParamMap({"p": Source("q")}).after(ParamMap({"r": _X}))


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        ("f16", "f32", True),
        ("bf16", "f16", False),
        ("f16", "bf16", False),
        ("u8", "i16", True),
        ("i8", "u16", False),
        ("i32", "f32", False),
        ("i32", "f64", True),
        ("f32", "i64", False),
        ("bool", "u8", True),
        ("u8", "bool", False),
    ],
)
def test_lossless(narrow: str, wide: str, expected: bool) -> None:
    assert lossless(narrow, wide) is expected


@st.composite
def _shapes(draw: st.DrawFn) -> dict[str, TensorSpec]:
    shapes = draw(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3))
    return {f"s{index}": TensorSpec(tuple(shape), "f32") for index, shape in enumerate(shapes)}


@st.composite
def _pieces(draw: st.DrawFn, of: Expr, types: dict[str, TensorSpec], depth: int = 0) -> list[Expr]:
    """Expressions that together hold every element of `of` once."""
    shape = of.infer(types).shape
    step = draw(st.sampled_from(["keep", "slice", "transpose", "reshape", "cast"])) if depth < 4 else "keep"
    if step == "transpose":
        return draw(_pieces(Transpose(of, tuple(draw(st.permutations(range(len(shape)))))), types, depth + 1))
    if step == "reshape":
        size = math.prod(shape)
        rows = draw(st.sampled_from([number for number in range(1, max(size, 1) + 1) if size % number == 0]))
        return draw(_pieces(Reshape(of, (rows, size // rows)), types, depth + 1))
    if step == "cast":
        return draw(_pieces(Cast(of, "f64"), types, depth + 1))
    if step == "slice":
        axis = draw(st.integers(0, len(shape) - 1))
        cut = draw(st.integers(0, shape[axis]))
        low, high = Slice(of, axis, 0, cut), Slice(of, axis, cut, shape[axis])
        # Both halves go on alike: boxes of differently viewed halves do not tile.
        return [low, high]
    return [of]


@st.composite
def _maps(draw: st.DrawFn, types: dict[str, TensorSpec], prefix: str) -> ParamMap:
    """A map that loses nothing: pieces of every tensor, some of them joined and padded with zeros."""
    pieces = [piece for name in types for piece in draw(_pieces(Source(name), types))]
    if len(pieces) > 1 and draw(st.booleans()):
        flat = [
            Cast(Reshape(piece, (math.prod(piece.infer(types).shape),)), "f64")
            for piece in (pieces.pop(), pieces.pop())
        ]
        pieces.append(Concat((flat[0], Zeros((draw(st.integers(0, 3)),), "f64"), flat[1]), 0))
    return ParamMap({f"{prefix}{index}": piece for index, piece in enumerate(draw(st.permutations(pieces)))})


def _assert_round_trip(mapping: ParamMap, types: dict[str, TensorSpec]) -> None:
    tensors = _tensors(types)
    restored = _evaluate_all(mapping.inverse(types), _evaluate_all(mapping, tensors))
    assert restored.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(restored[name], array)
        assert restored[name].dtype == array.dtype


@given(st.data())
@settings(deadline=None)
def test_the_inverse_restores_what_a_map_read(data: st.DataObject) -> None:
    types = data.draw(_shapes())
    _assert_round_trip(data.draw(_maps(types, "p")), types)


@given(st.data())
@settings(deadline=None)
def test_a_composed_map_equals_step_by_step(data: st.DataObject) -> None:
    types = data.draw(_shapes())
    first = data.draw(_maps(types, "p"))
    second = data.draw(_maps(first.infer(types), "q"))
    tensors = _tensors(types)
    expected = _evaluate_all(second, _evaluate_all(first, tensors))
    composed = second.after(first)
    for mapping in (composed, composed.simplify(types)):
        found = _evaluate_all(mapping, tensors)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype


@given(st.data())
@settings(deadline=None)
def test_the_normal_form_is_stable_and_keeps_the_type(data: st.DataObject) -> None:
    types = data.draw(_shapes())
    composed = data.draw(_maps(types, "p"))
    simple = composed.simplify(types)
    assert simple.infer(types) == composed.infer(types)
    assert simple.simplify(types) == simple
