"""Whisper at a tiny size with lively random weights, on every backend under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from nest.ir.inventory import parameters
from nest.loading import load, program_of

Array = np.ndarray[Any, Any]

# Pairwise different sizes, so that no two axes can be mistaken for each other.
TINY: dict[str, Any] = {
    "Mels": 5,
    "Frames": 22,
    "D": 24,
    "Heads": 3,
    "Inner": 40,
    "EncoderLayers": 2,
    "DecoderLayers": 3,
    "Vocab": 53,
    "MaxTokens": 19,
}
ENTRY = "whisper-tiny"
BACKENDS = ("jax", "nnx")


@pytest.fixture(scope="session", autouse=True)
def _own_compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled code is kept for this run alone, so that no test depends on an earlier one."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("xla")))
    yield
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.fixture(scope="session")
def weights() -> dict[str, Array]:
    """Random parameters: nothing is zero or one, and attention has something to choose from."""
    rng = np.random.default_rng(7)
    made: dict[str, Array] = {}
    for path, spec in parameters(program_of(ENTRY, **TINY)).items():
        scale = 1.5 / np.sqrt(spec.shape[-1]) if len(spec.shape) > 1 else 0.3
        base = 1.0 if path.endswith("norm.weight") else 0.0
        made[path] = (base + scale * rng.standard_normal(spec.shape)).astype(np.float32)
    return made


@pytest.fixture(scope="session")
def make(weights: dict[str, Array]) -> Callable[..., Any]:
    """A model over the random weights; one for each backend and choice of options is shared by all tests."""
    known: dict[tuple[Any, ...], Any] = {}

    def model(backend: str, *, fresh: bool = False, **options: Any) -> Any:
        key = (backend, *sorted(options.items()))
        if fresh or key not in known:
            known[key] = load(ENTRY, backend=backend, weights=weights, **TINY, **options)
        return known[key]

    return model


@pytest.fixture(scope="session")
def oracle(make: Callable[..., Any]) -> Any:
    """The reference backend in double precision."""
    return make("reference", precision="f64")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(make: Callable[..., Any], backend: str) -> Any:
    """The shared model of the backend under test."""
    return make(backend)


def mel_of(rows: int, seed: int = 0) -> Array:
    shape = (rows, TINY["Mels"], TINY["Frames"])
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tokens_of(rows: int, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, TINY["Vocab"], (rows, count)).astype(np.int32)


def folder() -> Path:
    return Path(__file__).parent
