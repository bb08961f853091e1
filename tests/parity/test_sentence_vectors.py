"""MiniLM's published weights: vectors beside the reference library's, the sample, and batches against single texts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nest
from nest.bench._task import ragged_texts
from nest.bench.sentences import NAME, library
from nest.registry import find

TEXTS = ragged_texts(40, seed=1)
BACKENDS = ["torch", "onnx", "jax", "nnx"]

pytestmark = pytest.mark.weights


@pytest.mark.reference
def test_vectors_are_the_reference_library_s() -> None:
    """On 40 ragged texts; `python -m nest.bench.sentences` measures 1,000."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = library(find(NAME))(TEXTS).astype(np.float64)
        for backend in BACKENDS:
            made = nest.pipeline(NAME, backend=backend)(TEXTS).astype(np.float64)
            cosine = (made * right).sum(1) / np.linalg.norm(made, axis=1) / np.linalg.norm(right, axis=1)
            assert (1 - cosine).max() < 1e-10, backend
            assert np.abs(made - right).max() < 2e-6, backend


@pytest.mark.filterwarnings("ignore::nest.tasks.TruncatedTextWarning")
def test_a_text_s_vector_is_the_same_beside_others() -> None:
    embed = nest.pipeline(NAME, backend="torch")
    together = embed(TEXTS[:12])
    alone = np.stack([embed(text) for text in TEXTS[:12]])
    assert np.abs(together - alone).max() < 1e-6


def test_the_sample_is_the_reference_s() -> None:
    (sample,) = find(NAME).samples
    assert sample.texts is not None
    made = nest.pipeline(NAME, backend="onnx").similarity(sample.texts)
    assert np.abs(made - np.array(sample.reference_matrix)).max() < 2e-6
