"""What models and sessions have of their own is what no entry may be called."""

from __future__ import annotations

from typing import Any

import pytest

import nest
from nest.backends.installed import BACKENDS as INSTALLED
from nest.errors import DefinitionError
from nest.layers import Block, Float32, Tensor, elaborate, entry
from nest.layers._reserved import TAKEN

SMALL = {"D": 8, "Heads": 1, "Inner": 8, "EncoderLayers": 1, "DecoderLayers": 1, "Vocab": 20, "Frames": 8}


def own_names(thing: Any) -> set[str]:
    """Public names that nest gives an object, not those of its framework's classes."""
    classes = [c for c in type(thing).__mro__ if c.__module__.startswith("nest.")]
    names = {n for c in classes for n in (*vars(c), *getattr(c, "__annotations__", {}))}
    return {n for n in names if not n.startswith("_")} - {"forward"}


@pytest.mark.parametrize("backend", ["reference", "torch", "onnx", "jax", "nnx"])
def test_every_name_of_a_model_or_session_is_reserved(backend: str) -> None:
    if not INSTALLED[backend].installed:
        pytest.skip(f"{backend} is not installed")
    model = nest.load("whisper-tiny.en", backend=backend, weights=None, **SMALL)
    assert own_names(model) | own_names(model.new_session()) <= TAKEN


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_an_entry_of_such_a_name_is_refused(name: str) -> None:
    @entry
    def run(self: Block, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
        return x

    root = type("Clash", (Block,), {name: run})
    with pytest.raises(
        DefinitionError, match=f"Clash has an entry '{name}', and every loaded model or session"
    ):
        elaborate(root)
