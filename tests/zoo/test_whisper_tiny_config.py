"""Whisper at a tiny configuration against the reference library in double precision: the oracle is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.loading import program_of
from nest.verify.weights import lively_parameters

pytestmark = pytest.mark.reference

# Pairwise different sizes, so that no swap of two axes goes unseen.
TINY = {
    "Mels": 5, "Frames": 26, "D": 24, "Heads": 3, "Inner": 40, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 57,
    "MaxTokens": 11,
}  # fmt: skip
BATCH, LENGTH = 2, 7


@pytest.fixture(scope="module")
def params() -> dict[str, Any]:
    return lively_parameters(program_of("whisper-tiny", **TINY), seed=5)


@pytest.fixture(scope="module")
def inputs() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    mel = rng.standard_normal((BATCH, TINY["Mels"], TINY["Frames"])).astype(np.float32)
    return mel, rng.integers(0, TINY["Vocab"], (BATCH, LENGTH)).astype(np.int32)


@pytest.fixture(scope="module")
def library(params: dict[str, Any], inputs: tuple[Any, Any]) -> dict[str, Any]:
    """The reference library's results in f64."""
    import torch

    from nest.bench.whisper_parity import reference_model
    from nest.registry import find

    model = reference_model(find("whisper-tiny"), params, TINY).double()
    mel, tokens = inputs
    with torch.no_grad():
        states = model.model.encoder(torch.from_numpy(mel).double()).last_hidden_state
        logits = model(encoder_outputs=(states,), decoder_input_ids=torch.from_numpy(tokens).long()).logits
    return {"states": states.numpy(), "logits": logits.numpy()}


def test_the_oracle_is_the_library_in_double_precision(
    params: dict[str, Any], inputs: tuple[Any, Any], library: dict[str, Any]
) -> None:
    oracle = nest.load("whisper-tiny", backend="reference", precision="f64", weights=params, **TINY)
    mel, tokens = inputs
    np.testing.assert_allclose(oracle.encode(mel), library["states"], atol=1e-12)
    np.testing.assert_allclose(oracle.decode(tokens, library["states"]), library["logits"], atol=1e-12)
