"""Attention in every combination of its options, and what integers do at their edges, against the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nest.layers import Block, Bool, DType, Float, Int32, Static, Tensor, attention, entry, slice

FAST = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Options(Block):
    """Attention whose options are fields; arguments that an option leaves out are taken and not used."""

    T: DType
    given: Static[frozenset[str]]
    causal: Static[bool]
    window: Static[int | None]
    scale: Static[float | None]
    softcap: Static[float | None]
    wide: Static[tuple[bool, ...]]

    @entry
    def go(
        self,
        q: Float[Tensor, "B 6 Q 4"],
        k: Float[Tensor, "B 2 K 4"],
        v: Float[Tensor, "B 2 K 5"],
        pos: Int32[Tensor, "B"],
        kv_len: Int32[Tensor, "B"],
        mask: Bool[Tensor, "B 6 Q K"],
        bias: Float[Tensor, "1 6 Q K"],
        sinks: Float[Tensor, "6"],
    ) -> Float[Tensor, "B 6 Q 5"]:
        for axis, whole in enumerate(self.wide):
            mask = mask if whole else slice(mask, axis, 0, 1)
        extra = {"pos": pos, "kv_len": kv_len, "mask": mask, "bias": bias, "sinks": sinks}
        return attention(
            q, k, v,
            **{n: t for n, t in extra.items() if n in self.given},
            causal=self.causal, window=self.window, scale=self.scale, softcap=self.softcap,
        )  # fmt: skip


@FAST
@given(data=st.data())
def test_attention_is_the_oracle_s(data: st.DataObject, pair: Callable[..., Any]) -> None:
    causal = data.draw(st.booleans(), "causal")
    names = ["mask", "bias", "sinks", *(["pos"] if causal else ["kv_len"])]
    queries, keys = data.draw(st.integers(1, 3), "queries"), data.draw(st.integers(1, 5), "keys")
    wide = data.draw(st.tuples(*[st.booleans()] * 4), "mask axes")
    model, oracle = pair(
        Options,
        given=frozenset(n for n in names if data.draw(st.booleans(), n)),
        causal=causal,
        window=data.draw(st.sampled_from([None, 1, 2]), "window") if causal else None,
        scale=data.draw(st.sampled_from([None, 0.3]), "scale"),
        softcap=data.draw(st.sampled_from([None, 1.5]), "softcap"),
        wide=wide,
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    inputs = [
        rng.standard_normal((2, 6, queries, 4)).astype("f4"),
        rng.standard_normal((2, 2, keys, 4)).astype("f4"),
        rng.standard_normal((2, 2, keys, 5)).astype("f4"),
        rng.integers(0, keys + 1, 2).astype("i4"),
        rng.integers(0, keys + 1, 2).astype("i4"),
        rng.random((2, 6, queries, keys)) < 0.6,
        rng.standard_normal((1, 6, queries, keys)).astype("f4"),
        rng.standard_normal(6).astype("f4"),
    ]
    np.testing.assert_allclose(model.go(*inputs), oracle.go(*inputs), rtol=0, atol=3e-6)


class Division(Block):
    T: DType

    @entry
    def go(
        self, a: Int32[Tensor, "N"], b: Int32[Tensor, "N"]
    ) -> tuple[Int32[Tensor, "N"], Int32[Tensor, "N"]]:
        return a // b, a % b


@pytest.mark.parametrize("level", ["none", "all"])
def test_integers_are_divided_towards_minus_infinity(level: str, pair: Callable[..., Any]) -> None:
    model, _ = pair(Division, session_options={"graph_optimization_level": level})
    numbers = [-(2**31) + 1, -7, -6, -1, 0, 1, 6, 7, 2**31 - 1]
    pairs = np.array([(a, b) for a in numbers for b in numbers if b != 0], np.int32)
    quotient, rest = model.go(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(quotient, pairs[:, 0] // pairs[:, 1])
    np.testing.assert_array_equal(rest, pairs[:, 0] % pairs[:, 1])
