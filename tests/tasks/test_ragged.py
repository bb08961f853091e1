"""Rows of unequal length as batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nest.backends._buckets import bucket_of
from nest.tasks.ragged import batches, bucket, power_of_two

ROWS = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=40), max_size=40)


@given(ROWS, st.integers(1, 8), st.integers(1, 100), st.booleans())
def test_every_row_comes_once_and_whole(
    rows: list[list[int]], size: int, budget: int, few_shapes: bool
) -> None:
    seen = []
    for batch in batches(rows, batch_size=size, budget=budget, longest=40, few_shapes=few_shapes):
        assert 1 <= len(batch.rows) <= size
        height, width = batch.tokens.shape
        assert height >= len(batch.rows)
        assert len(batch.rows) == 1 or height * width <= budget
        assert batch.lengths.shape == (height,)
        assert (batch.lengths >= 1).all()
        for place, row in enumerate(batch.rows):
            assert batch.tokens[place, : batch.lengths[place]].tolist() == rows[row]
            assert not batch.tokens[place, batch.lengths[place] :].any()
        seen += batch.rows
    assert sorted(seen) == list(range(len(rows)))
    widths = [len(rows[i]) for i in seen]
    assert widths == sorted(widths, reverse=True)


def test_few_shapes_are_few() -> None:
    rng = np.random.default_rng(0)
    rows = [[1] * int(n) for n in rng.integers(2, 256, 1000)]
    options = {"batch_size": 32, "budget": 4096, "longest": 256}
    few = {b.tokens.shape for b in batches(rows, few_shapes=True, **options)}
    many = {b.tokens.shape for b in batches(rows, **options)}
    assert len(few) <= 18 < len(many)
    assert {width for _, width in few} == {8, 16, 32, 48, 64, 96, 128, 192, 256}


def test_buckets_end_at_the_largest() -> None:
    assert [bucket(n, 100) for n in (1, 8, 9, 33, 49, 64, 65, 97)] == [8, 8, 16, 48, 64, 64, 96, 100]
    assert [power_of_two(n, 6) for n in (1, 2, 3, 5)] == [1, 2, 4, 6]


@given(st.integers(1, 10_000))
def test_a_long_row_is_padded_by_less_than_a_third_of_the_bucket(size: int) -> None:
    assert size <= bucket_of(size) <= max(64, size * 3 / 2)
    assert bucket_of(bucket_of(size)) == bucket_of(size)
