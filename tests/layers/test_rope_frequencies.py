"""Frequencies of rotary positions, plain and scaled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nest.layers import rope_frequencies

LLAMA_3 = (8.0, 1.0, 4.0, 8192)


def test_plain() -> None:
    assert rope_frequencies(4, 10000.0) == (1.0, 0.01)
    assert rope_frequencies(6, 8.0) == pytest.approx((1.0, 0.5, 0.25))


def test_scaling_keeps_the_fast_slows_the_slow_and_fades_between() -> None:
    """Each by its wavelength against the length, as the paper's authors publish it."""
    plain, scaled = rope_frequencies(128, 500000.0), rope_frequencies(128, 500000.0, LLAMA_3)
    kinds = set()
    for before, after in zip(plain, scaled, strict=True):
        wavelength = 2 * math.pi / before
        if wavelength < 8192 / 4:
            kinds.add("kept")
            assert after == before
        elif wavelength > 8192 / 1:
            kinds.add("slowed")
            assert after == pytest.approx(before / 8)
        else:
            kinds.add("faded")
            share = (8192 / wavelength - 1) / (4 - 1)
            assert after == pytest.approx((1 - share) * before / 8 + share * before)
            assert before / 8 < after < before
    assert kinds == {"kept", "slowed", "faded"}


@pytest.mark.reference
@pytest.mark.parametrize("scaled", [False, True])
def test_the_reference_library_s(scaled: bool) -> None:
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    kind = {"rope_type": "default"}
    if scaled:
        names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
        kind = {"rope_type": "llama3", **dict(zip(names, LLAMA_3, strict=True))}
    config = LlamaConfig(
        hidden_size=256, num_attention_heads=2, rope_parameters={"rope_theta": 500000.0, **kind}
    )
    ours = rope_frequencies(128, 500000.0, LLAMA_3 if scaled else None)
    np.testing.assert_allclose(ours, LlamaRotaryEmbedding(config).inv_freq.numpy(), rtol=1e-6)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="5 elements are no whole pairs"):
        rope_frequencies(5, 10000.0)
    with pytest.raises(ValueError, match=r"\(factor, low, high, length\); \[8\.0, 1\.0\] came"):
        rope_frequencies(4, 10000.0, (8.0, 1.0))
