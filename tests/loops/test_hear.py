"""Listening and decoding in one call gives what the two give."""

from __future__ import annotations

import numpy as np
import pytest

import nest

SMALL = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 2, "Vocab": 17,
    "MaxTokens": 16,
}  # fmt: skip


@pytest.mark.parametrize("backend", ["torch", "reference", "onnx", "jax", "nnx"])
def test_one_call_is_listen_and_greedy(backend: str) -> None:
    session = nest.load("whisper-tiny", backend=backend, weights=None, seed=2, **SMALL).new_session(Batch=2)
    mel = np.random.default_rng(0).standard_normal((2, 5, 30)).astype(np.float32)
    zero, out = np.zeros(17, np.float32), np.zeros((2, 8), np.int32)
    arguments = ([[1, 2, 0], [3, 4, 5]], out, 7, zero, zero, [2, 3])
    session.listen(mel)
    two = [session.numpy(r) for r in session.greedy(*arguments)]
    one = [session.numpy(r) for r in session.hear(mel, *arguments)]
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
