"""A small Whisper with lively random weights on every backend, for tests of sessions and of loops."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import nest
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.weights.random import random_parameters

Array = np.ndarray[Any, Any]

BACKENDS = ("torch", "jax", "nnx", "onnx", "reference")

# Pairwise different sizes, so that no two axes can be mistaken for each other.
SMALL: dict[str, Any] = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 17,
    "MaxTokens": 24,
}  # fmt: skip
VOCAB, CAPACITY = SMALL["Vocab"], SMALL["MaxTokens"]


@cache
def weights() -> dict[str, Array]:
    """Weights under which the next token depends on all before it, so that rows differ and some end early."""
    rng = np.random.default_rng(1)
    drawn = random_parameters(parameters(program_of("whisper-tiny", **SMALL)), seed=7)
    shaken = {p: a * 12 if a.ndim > 1 else a + 0.2 * rng.standard_normal(a.shape) for p, a in drawn.items()}
    return {p: np.asarray(a, np.float32) for p, a in shaken.items()}


@cache
def model_on(backend: str, **options: Any) -> Any:
    """The model on a backend; all tests of a run share it."""
    return nest.load("whisper-tiny", backend=backend, weights=weights(), **SMALL, **options)


def mel_of(rows: int, seed: int = 2) -> Array:
    shape = (rows, SMALL["Mels"], SMALL["Frames"])
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tokens_of(rows: int, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, VOCAB, (rows, count)).astype(np.int32)


def heard(model: Any, rows: int = 1, seed: int = 2, **symbols: int) -> Any:
    """A session that has listened."""
    session = model.new_session(Batch=rows, **symbols)
    session.listen(mel_of(rows, seed))
    return session


def padded(prompts: list[list[int]]) -> tuple[Array, Array]:
    """Prompts packed to the left, and their lengths."""
    tokens = np.zeros((len(prompts), max(map(len, prompts))), np.int32)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
    return tokens, np.array([len(p) for p in prompts], np.int32)
