"""What `nest.load` refuses before anything is fetched or built."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import nest
from nest.errors import CallError, DefinitionError, NestError, WeightsError


@pytest.mark.parametrize("weights", [3, [], True, False, b"x"])
def test_weights_that_are_none(weights: object) -> None:
    with pytest.raises(CallError, match=r"means nothing; pass the path of a safetensors file, a mapping"):
        nest.load("whisper-tiny.en", backend="reference", weights=weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, None, 1.5, "0", True, 1 << 64])
def test_seeds_are_integers(seed: Any) -> None:
    with pytest.raises(CallError, match=r"seed is an integer from 0 to 2\*\*64 - 1, and "):
        nest.load("whisper-tiny.en", backend="reference", weights=None, seed=seed)


@pytest.mark.parametrize("backend", [3, ["torch"], True])
def test_a_backend_is_a_name(backend: Any) -> None:
    with pytest.raises(CallError, match=r"backend= is a name such as 'torch', and "):
        nest.load("whisper-tiny.en", backend=backend, weights=None)


@pytest.mark.parametrize("path", ["a\0b", "a" * 5000, "./", "no/such/file"])
def test_paths_that_lead_to_no_weights(path: str) -> None:
    with pytest.raises(WeightsError, match=r"The weights .* cannot be read"):
        nest.load("whisper-tiny.en", backend="reference", weights=path)


@pytest.mark.parametrize("name", ["Vocab", "Frames", "D", "Heads", "EncoderLayers"])
@pytest.mark.parametrize("size", [0, -1])
def test_sizes_are_one_or_more(name: str, size: int) -> None:
    with pytest.raises(DefinitionError, match=rf"'{name}' is a size"):
        nest.load("whisper-tiny.en", backend="reference", weights=None, **{name: size})


def test_more_layers_than_any_model_has() -> None:
    with pytest.raises(DefinitionError, match="EncoderLayers = 1000000000 blocks is more than 4096"):
        nest.load("whisper-tiny.en", backend="reference", weights=None, EncoderLayers=10**9)


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(NestError):
        nest.load("whisper-tiny.en", backend="reference", weights=None, D=-1)
    assert gc.isenabled()
    gc.disable()
    try:
        nest.load("whisper-tiny.en", backend="reference", weights=None, D=8, Heads=1, Inner=8, Vocab=20)
        assert not gc.isenabled()
    finally:
        gc.enable()
