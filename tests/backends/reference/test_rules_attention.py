"""Attention and rope against a literal sum over keys, complex rotation, and torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.backends.reference.rules import RULES

OPTIONS: dict[str, Any] = {
    "causal": False,
    "window": None,
    "scale": None,
    "softcap": None,
}


def attend(q: Any, k: Any, v: Any, **given: Any) -> Any:
    optional = [given.pop(name, None) for name in ("pos", "kv_len", "mask", "bias", "sinks")]
    return RULES["attention"](q, k, v, *optional, **{**OPTIONS, **given})


def literal(q: Any, k: Any, v: Any, **o: Any) -> Any:
    """The docstring, one query and one key at a time."""
    batch, heads, queries, size = q.shape
    share, keys = heads // k.shape[1], k.shape[2]
    mask = np.broadcast_to(o.get("mask", np.array(True)), (batch, heads, queries, keys))
    bias = np.broadcast_to(o.get("bias", np.array(0.0)), (batch, heads, queries, keys))
    scale = 1 / math.sqrt(size) if o["scale"] is None else o["scale"]
    result = np.zeros((batch, heads, queries, v.shape[3]))
    for b, h, i in np.ndindex(batch, heads, queries):
        own = i + o.get("pos", [0] * batch)[b]
        first = own - o["window"] + 1 if "window" in o else 0
        seen = range(max(first, 0), min(own + 1, keys)) if o["causal"] else range(keys)
        scores: dict[int, float] = {}
        for j in seen:
            if j < o.get("kv_len", [keys] * batch)[b] and mask[b, h, i, j]:
                score = scale * sum(q[b, h, i, e] * k[b, h // share, j, e] for e in range(size))
                if o["softcap"] is not None:
                    score = o["softcap"] * math.tanh(score / o["softcap"])
                scores[j] = score + bias[b, h, i, j]
        total = sum(math.exp(s) for s in scores.values())
        total += math.exp(o["sinks"][h]) if "sinks" in o else 0.0
        for j, s in scores.items():
            result[b, h, i] += math.exp(s) / total * v[b, h // share, j]
    return result


def inputs(seed: int, groups: int = 2, share: int = 2, queries: int = 3) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(2, groups * share, queries, 4)),
        rng.normal(size=(2, groups, 5, 4)),
        rng.normal(size=(2, groups, 5, 6)),
    )


@settings(deadline=None, max_examples=80)
@given(st.data(), st.integers(0, 2**31))
def test_attention_is_its_docstring(data: st.DataObject, seed: int) -> None:
    q, k, v = inputs(seed, data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3)))
    rng = np.random.default_rng(seed + 1)
    full = (2, q.shape[1], 3, 5)
    shapes = st.tuples(*(st.sampled_from([1, n]) for n in full))
    options: dict[str, Any] = {"causal": data.draw(st.booleans())}
    if data.draw(st.booleans()):
        options["pos"] = np.array(data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4))), np.int32)
    if options["causal"] and data.draw(st.booleans()):
        options["window"] = data.draw(st.integers(1, 4))
    if data.draw(st.booleans()):
        options["kv_len"] = np.array(data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))), np.int32)
    if data.draw(st.booleans()):
        options["mask"] = rng.random(data.draw(shapes)) < 0.6
    if data.draw(st.booleans()):
        options["bias"] = rng.normal(size=data.draw(shapes))
    if data.draw(st.booleans()):
        options["sinks"] = rng.normal(size=q.shape[1])
    options["scale"] = data.draw(st.sampled_from([None, 0.3]))
    options["softcap"] = data.draw(st.sampled_from([None, 1.5]))
    assert np.abs(attend(q, k, v, **options) - literal(q, k, v, **options)).max() < 1e-12


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_torchs(causal: bool) -> None:
    q, k, v = inputs(5, queries=5)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, (q, k, v)), is_causal=causal, enable_gqa=True
    )
    assert np.abs(attend(q, k, v, causal=causal) - expected.numpy()).max() < 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_query_that_sees_no_key_gives_zeros(dtype: Any) -> None:
    q, k, v = (x.astype(dtype) for x in inputs(7))
    sinks = np.zeros(4, dtype)
    minus = np.full((1, 1, 1, 5), -np.inf, dtype)
    for options in (
        {"kv_len": np.array([0, 5])},
        {"mask": np.array([False, True]).reshape(2, 1, 1, 1)},
        {"mask": np.array([False, True]).reshape(2, 1, 1, 1), "sinks": sinks},
    ):
        result = attend(q, k, v, **options)
        assert (result[0] == 0).all()
        assert (result[1] != 0).all()
    assert (attend(q, k, v, bias=minus) == 0).all()


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (x.astype(np.float32) for x in inputs(8))
    result = attend(1000 * q, 1000 * k, v)
    assert np.isfinite(result).all()
    sunk = attend(q, k, v, sinks=np.full(4, 1e4, np.float32))
    assert (sunk == 0).all()


def test_causal_attention_a_step_at_a_time_is_attention_of_all() -> None:
    q, k, v = inputs(9, queries=5)
    whole = attend(q, k, v, causal=True)
    for step in range(5):
        pos = np.array([step, step], np.int32)
        one = attend(q[:, :, step : step + 1], k, v, pos=pos, causal=True)
        np.testing.assert_allclose(one[:, :, 0], whole[:, :, step], rtol=0, atol=1e-14)


def rotated(x: Any, places: Any, freq: Any, layout: str, scale: float) -> Any:
    """Pairs as complex numbers, turned by exp(i * angle)."""
    pairs = len(freq)
    index = np.arange(pairs)
    first, second = (index, index + pairs) if layout == "half" else (2 * index, 2 * index + 1)
    turned = (x[..., first] + 1j * x[..., second]) * scale * np.exp(1j * places[:, None, :, None] * freq)
    result = x.copy()
    result[..., first], result[..., second] = turned.real, turned.imag
    return result


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("pairs", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_rope_rotates_pairs(layout: str, pairs: int, scale: float) -> None:
    rng = np.random.default_rng(2)
    x, freq = rng.normal(size=(2, 3, 4, 6)), rng.uniform(0.1, 1.0, size=pairs)
    places = np.array([[0, 1, 2, 3], [7, 3, 9, 100]], np.int32)
    result = RULES["rope"](x, places, freq, layout=layout, scale=scale)
    assert np.abs(result - rotated(x, places, freq, layout, scale)).max() < 1e-12
    np.testing.assert_array_equal(result[..., 2 * pairs :], x[..., 2 * pairs :])


def test_rope_counts_on_from_the_first_position() -> None:
    rng = np.random.default_rng(3)
    x, freq = rng.normal(size=(2, 3, 4, 6)), rng.uniform(0.1, 1.0, size=3)
    first = np.array([5, 11], np.int32)
    each = first[:, None] + np.arange(4, dtype=np.int32)
    results = [RULES["rope"](x, pos, freq, layout="half", scale=1.0) for pos in (first, each)]
    np.testing.assert_array_equal(*results)


def test_rope_of_half_precision_keeps_long_positions_apart() -> None:
    x = np.ones((1, 1, 2, 2), np.float16)
    pos = np.array([[4000, 4001]], np.int32)
    result = RULES["rope"](x, pos, np.array([1.0], np.float32), layout="half", scale=1.0)
    assert result.dtype == np.float16
    expected = [[math.cos(p) - math.sin(p), math.cos(p) + math.sin(p)] for p in (4000, 4001)]
    np.testing.assert_allclose(result[0, 0], expected, atol=2e-3)
