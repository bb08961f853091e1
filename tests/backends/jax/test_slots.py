"""Slots of a cache, written at an index that is known when the program runs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nest.backends.jax.rules.indexing import write_slots


@pytest.mark.parametrize("pos", [0, 3, 5, 9])
@pytest.mark.parametrize(("axis", "rows"), [(2, 0), (0, 2)])
def test_one_row_is_written_as_a_row_of_several(pos: int, axis: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    shape, width = [6, 6, 6], [6, 6, 6]
    shape[rows] = width[rows] = 2
    width[axis] = 1
    cache, value = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in (shape, width))
    both = write_slots(cache, value, jnp.array([pos, 1], jnp.int32), axis, rows)
    first = jnp.array([0])
    one = write_slots(
        cache.take(first, rows), value.take(first, rows), jnp.array([pos], jnp.int32), axis, rows
    )
    np.testing.assert_array_equal(one, both.take(first, rows))


def test_one_row_needs_no_scatter() -> None:
    arguments = jnp.zeros((1, 2, 8, 4)), jnp.ones((1, 2, 1, 4)), jnp.array([3], jnp.int32)
    traced = str(jax.make_jaxpr(lambda cache, value, pos: write_slots(cache, value, pos, 2))(*arguments))
    assert "scatter" not in traced
    assert "dynamic_update_slice" in traced
