"""Which backend a call takes that names none, and what it is told where there is none."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

import nest
from nest.backends.installed import BACKENDS, ORDER, first_installed
from nest.errors import CallError, MissingDependencyError
from nest.loading import chosen_backend
from nest.tasks import pipeline

MODULES = ("onnxruntime", "onnx_ir", "torch", "jax", "flax", "numpy")
TINY = {
    "Mels": 5,
    "Frames": 26,
    "D": 24,
    "Heads": 3,
    "Inner": 40,
    "EncoderLayers": 1,
    "DecoderLayers": 1,
    "Vocab": 57,
}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this environment one that has these frameworks alone."""

    def hide(*modules: str) -> None:
        def find_spec(name: str) -> ModuleSpec | None:
            assert name in MODULES
            return ModuleSpec(name, None) if name in modules else None

        monkeypatch.setattr("nest.backends.installed.find_spec", find_spec)

    return hide


@pytest.mark.parametrize(
    ("modules", "chosen"),
    [
        (MODULES, "onnx"),
        (("onnxruntime", "torch", "jax"), "torch"),  # onnx needs onnx-ir too
        (("jax", "flax"), "jax"),
        (("onnxruntime", "onnx_ir"), "onnx"),
    ],
)
def test_the_first_that_is_installed(only: Callable[..., None], modules: Any, chosen: str) -> None:
    only(*modules)
    assert first_installed() == chosen == chosen_backend()


def test_what_a_call_asks_for_excludes_backends(only: Callable[..., None]) -> None:
    only(*MODULES)
    assert chosen_backend(device="cpu") == "onnx"
    assert chosen_backend(device="cuda") == "torch"
    assert chosen_backend(dtype="bf16") == "torch"
    assert chosen_backend(dtype="f16", precision=None, providers=None) == "onnx"
    assert chosen_backend(precision="f64") == "reference"
    only("torch", "jax")
    with pytest.raises(
        MissingDependencyError, match=r"nest looks for onnx\. .* pip install 'nest-zoo\[onnx\]'$"
    ):
        chosen_backend(threads=2)


def test_none_is_told_what_to_type(only: Callable[..., None]) -> None:
    only("numpy", "flax")
    with pytest.raises(MissingDependencyError) as caught:
        nest.load("whisper-tiny", weights=None)
    assert str(caught.value) == (
        "No backend that can run this is installed: nest looks for onnx, torch, jax. Install the lightest with: "
        "pip install 'nest-zoo[onnx]'"
    )
    with pytest.raises(MissingDependencyError, match=r"pip install 'nest-zoo\[onnx,audio\]'$"):
        pipeline("whisper-tiny", weights=None)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_model_names_its_backend(name: str) -> None:
    model = nest.load("whisper-tiny", backend=name, weights=None, **TINY)
    assert model.backend == name


def test_a_load_that_names_none_takes_the_first() -> None:
    assert nest.load("whisper-tiny", weights=None, **TINY).backend == ORDER[0]
    assert nest.load("whisper-tiny", weights=None, dtype="bf16", **TINY).backend == "torch"


def test_options_of_another_backend_are_refused() -> None:
    with pytest.raises(CallError, match="threads= belongs to the onnx backend"):
        nest.load("whisper-tiny", weights=None, backend="torch", threads=2)
