"""Rules that move, make and index elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nest.backends.reference.rules import RULES
from nest.errors import CallError

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


def counted(shape: tuple[int, ...]) -> Any:
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


def test_reshape_is_row_major_whatever_lies_below() -> None:
    x = counted((2, 3, 4)).transpose(2, 0, 1)
    assert RULES["reshape"](x, shape=(8, 3)).tolist() == torch.from_numpy(x).reshape(8, 3).tolist()
    assert RULES["reshape"](np.array([5.0]), shape=()).shape == ()


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_permute_puts_axis_i_where_axes_say(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    x = counted(shape)
    result = RULES["permute"](x, axes=axes)
    assert result.shape == tuple(shape[a] for a in axes)
    np.testing.assert_array_equal(result, torch.from_numpy(x).permute(axes).numpy())


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_concat_and_slice_undo_each_other(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    middle = data.draw(st.integers(0, shape[axis]))
    x = counted(shape)
    parts = [
        RULES["slice"](x, axis=axis, start=start, stop=stop, step=1)
        for start, stop in ((0, middle), (middle, shape[axis]))
    ]
    assert [p.shape[axis] for p in parts] == [middle, shape[axis] - middle]
    np.testing.assert_array_equal(RULES["concat"](*parts, axis=axis), x)


def test_slice_takes_steps() -> None:
    x = counted((2, 7))
    assert RULES["slice"](x, axis=1, start=1, stop=6, step=2).tolist() == x[:, 1:6:2].tolist()
    assert RULES["slice"](x, axis=1, start=3, stop=3, step=1).shape == (2, 0)


def test_pad_adds_on_both_sides_of_one_axis() -> None:
    x = counted((2, 3))
    expected = torch.nn.functional.pad(torch.from_numpy(x), (0, 0, 1, 2), value=-1.5)
    np.testing.assert_array_equal(RULES["pad"](x, axis=0, before=1, after=2, value=-1.5), expected.numpy())
    whole = RULES["pad"](np.array([True]), axis=0, before=0, after=1, value=0.0)
    assert whole.tolist() == [True, False]


def test_broadcast_to_repeats() -> None:
    x = counted((3, 1))
    result = RULES["broadcast_to"](x, shape=(2, 3, 4))
    np.testing.assert_array_equal(result, torch.from_numpy(x).expand(2, 3, 4).numpy())


def test_tensors_from_sizes_have_the_type_that_is_asked_for() -> None:
    i32, f32 = np.dtype(np.int32), np.dtype(np.float32)
    numbers = RULES["iota"](size=4, dtype=i32)
    assert (numbers.tolist(), numbers.dtype) == ([0, 1, 2, 3], i32)
    filled = RULES["full"](7, shape=(2, 1), dtype=f32)
    assert (filled.tolist(), filled.dtype) == ([[7.0], [7.0]], f32)
    assert RULES["full"](True, shape=(), dtype=np.dtype(np.bool_)).item() is True
    table = RULES["constant"](values=((1.0, 0.1), (2.0, 3.0)), dtype=f32)
    assert table.dtype == f32
    assert table.tolist() == np.array([[1.0, 0.1], [2.0, 3.0]], np.float32).tolist()
    assert RULES["constant"](values=5, dtype=i32).shape == ()


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_take_replaces_the_axis_by_those_of_the_indices(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    places = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    indices = data.draw(hnp.arrays(np.int32, places, elements=st.integers(0, shape[axis] - 1)))
    x = counted(shape)
    result = RULES["take"](x, indices, axis=axis)
    assert result.shape == (*shape[:axis], *places, *shape[axis + 1 :])
    flat = torch.index_select(torch.from_numpy(x), axis, torch.from_numpy(indices.reshape(-1)))
    np.testing.assert_array_equal(result, flat.numpy().reshape(result.shape))


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_take_along_has_an_index_for_each_place(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    narrow = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    places = [1 if small else size for size, small in zip(shape, narrow, strict=True)]
    places[axis] = data.draw(st.integers(1, 4))
    indices = data.draw(hnp.arrays(np.int32, tuple(places), elements=st.integers(0, shape[axis] - 1)))
    x = counted(shape)
    whole = list(shape)
    whole[axis] = places[axis]
    spread = torch.from_numpy(np.broadcast_to(indices, whole).astype(np.int64))
    expected = torch.gather(torch.from_numpy(x), axis, spread)
    np.testing.assert_array_equal(RULES["take_along"](x, indices, axis=axis), expected.numpy())


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_scatter_set_writes_what_take_along_reads(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, shape[axis]))
    seed = data.draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    places = [*shape]
    places[axis] = count
    order = np.argsort(rng.random(shape), axis=axis)
    indices = np.take(order, range(count), axis).astype(np.int32)
    x, updates = counted(shape), rng.normal(size=places)
    before = x.copy()
    result = RULES["scatter_set"](x, indices, updates, axis=axis)
    expected = torch.from_numpy(x).scatter(
        axis, torch.from_numpy(indices.astype(np.int64)), torch.from_numpy(updates)
    )
    np.testing.assert_array_equal(result, expected.numpy())
    np.testing.assert_array_equal(RULES["take_along"](result, indices, axis=axis), updates)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_its_axis_is_an_error(index: int) -> None:
    x = np.zeros((2, 3))
    indices = np.array([[0], [index]], np.int32)
    calls = {
        "take": lambda: RULES["take"](x, indices, axis=1),
        "take_along": lambda: RULES["take_along"](x, indices, axis=1),
        "scatter_set": lambda: RULES["scatter_set"](x, indices, np.ones((2, 1)), axis=1),
    }
    for op, call in calls.items():
        with pytest.raises(CallError) as caught:
            call()
        assert str(caught.value) == (
            f"{op}: the index {index} is outside axis 1 of a tensor of shape [2, 3]; an index is 0 to 2."
        )
