"""The short helpers of ejected NNX source are those that they replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nest.layers import Block, DType, Float, Int32, Static, Tensor, attention, elaborate, entry
from nest.loading import program_of


@pytest.fixture
def plain() -> Any:
    from nest.export.source import plain as module

    return module


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("pos", [None, [3, 0]])
def test_attention(pos: Any, plain: Any) -> None:
    from nest.backends.jax.rules.attention import attention as full
    from nest.backends.jax.rules.attention import visible

    slots = None if pos is None else np.int32(pos)
    q, k, v = normal(2, 3, 4, 5), normal(2, 3, 8, 5), normal(2, 3, 8, 6)
    mask = plain.visible(4, 8, slots)
    np.testing.assert_array_equal(mask, visible(4, 8, slots))
    np.testing.assert_allclose(plain.attention(q, k, v, mask), full(q, k, v, mask), atol=1e-6)
    np.testing.assert_allclose(plain.attention(q, k, v), full(q, k, v), atol=1e-6)


@pytest.mark.parametrize("pos", [2, [3, 0]])
@pytest.mark.parametrize("axis", [1, 2])
def test_update_cache(pos: Any, axis: int, plain: Any) -> None:
    from nest.backends.jax.nnx.helpers import Cache, update_cache

    start = pos if isinstance(pos, int) else np.int32(pos)
    held, value = normal(2, 6, 7, 3), normal(2, 6, 7, 3)[:, :2, :2]
    value = value[:, :2] if axis == 1 else np.repeat(value, 3, axis=1)
    value = np.repeat(value, 4, axis=2)[:, :, :7] if axis == 1 else value
    caches = Cache(np.array(held)), Cache(np.array(held))
    results = plain.update_cache(caches[0], value, start, axis), update_cache(caches[1], value, start, axis)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(caches[0][...], results[0])


@pytest.mark.parametrize("stride", [1, 2])
def test_conv(stride: int, plain: Any) -> None:
    from nest.backends.jax.rules.contraction import conv

    x, weight, bias = normal(2, 3, 9), normal(4, 3, 3), normal(4)
    options = {"stride": (stride,), "padding": (1,)}
    np.testing.assert_allclose(
        plain.conv(x, weight, bias, **options), conv(x, weight, bias, **options), atol=1e-6
    )


@pytest.mark.parametrize("bias", [None, normal(4)])
def test_linear(bias: Any, plain: Any) -> None:
    from nest.backends.jax.rules.contraction import linear

    x, weight = normal(2, 3, 5), normal(4, 5)
    np.testing.assert_array_equal(plain.linear(x, weight, bias), linear(x, weight, bias))


def test_layer_norm(plain: Any) -> None:
    from flax import nnx

    from nest.backends.jax.nnx.layers import LayerNorm

    ours, theirs = (kind(5, np.float32, eps=1e-5, rngs=nnx.Rngs(0)) for kind in (plain.LayerNorm, LayerNorm))
    for layer in (ours, theirs):
        layer.weight.set_value(normal(5))
        layer.bias.set_value(normal(1, 5)[0])
    x = 3 + normal(2, 4, 5)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-6)


class Asking(Block):
    """Attention that asks for one thing more than the short helper has."""

    T: DType
    what: Static[str]

    @entry
    def go(
        self, q: Float[Tensor, "B 4 Q 3"], k: Float[Tensor, "B 2 K 3"], full: Float[Tensor, "B 4 K 3"],
        kv_len: Int32[Tensor, "B"],
    ) -> Float[Tensor, "B 4 Q 3"]:  # fmt: skip
        options: dict[str, Callable[[], Tensor]] = {
            "groups": lambda: attention(q, k, k),
            "lengths": lambda: attention(q, full, full, kv_len=kv_len),
            "softcap": lambda: attention(q, full, full, softcap=2.0),
            "window": lambda: attention(q, full, full, causal=True, window=2),
            "nothing": lambda: attention(q, full, full, causal=True),
        }
        return options[self.what]()


@pytest.mark.parametrize("what", ["groups", "lengths", "softcap", "window", "nothing"])
def test_a_program_that_asks_for_more_gets_the_whole_helper(what: str, plain: Any) -> None:
    helpers = plain.plain_helpers(elaborate(Asking, T="f32", what=what))
    assert ({"attention", "visible"} <= helpers.keys()) == (what == "nothing")


def test_whisper_asks_for_no_more(plain: Any) -> None:
    helpers = plain.plain_helpers(program_of("whisper-tiny"))
    assert helpers.keys() == {"attention", "visible", "update_cache", "linear", "conv", "LayerNorm"}
