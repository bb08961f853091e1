"""Rules that have a kernel for one platform take it where the model is to run, and not where jax happens to be."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nest.loading import load

from .conftest import TINY

# As many encoder states as GPUs have a fused attention for.
LONG = {**TINY, "Frames": 140, "EncoderLayers": 1, "DecoderLayers": 1}
MEL = np.random.default_rng(0).standard_normal((2, TINY["Mels"], LONG["Frames"])).astype(np.float32)


def model(backend: str, **options: Any) -> Any:
    return load("whisper-tiny", backend=backend, weights=None, dtype="bf16", **LONG, **options)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose default platform is a GPU, so far as rules see."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.usefixtures("gpu")
def test_the_kernels_of_the_default_platform_are_taken() -> None:
    made = model("jax")
    with pytest.raises(RuntimeError, match="cuDNN is not detected"):
        jax.make_jaxpr(made.function("encode"))(made.params, jnp.asarray(MEL, jnp.bfloat16))


@pytest.mark.usefixtures("gpu")
def test_a_model_on_another_device_does_not_take_them(backend: str) -> None:
    found = model(backend, device="cpu").encode(MEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "default_backend", lambda: "cpu")
        want = model(backend).encode(MEL)
    np.testing.assert_array_equal(found.astype("f4"), want.astype("f4"))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("platforms", [("cpu", "cuda"), ("cpu",)])
def test_an_export_for_other_platforms_does_not_take_them(backend: str, platforms: tuple[str, ...]) -> None:
    exported = model(backend).export("encode", platforms=platforms)
    assert exported.platforms == platforms
    assert "cudnn" not in exported.mlir_module()
