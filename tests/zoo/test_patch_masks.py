"""Patches that are masked, and rows that are beside others, change no other row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.registry import find

ENTRIES = {
    "vit-base-patch16-224": "forward",
    "dinov2-base": "embed_image",
    "clip-vit-base-patch32": "embed_image",
    "siglip-base-patch16-224": "embed_image",
}


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax"])
@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_masked_is_never_seen(name: str, backend: str) -> None:
    """Padding is rows of patches at the bottom: their pixels change nothing, and unmasked they would."""
    tiny = find(name).manifest.tiny
    model = nest.load(name, backend=backend, weights=None, **tiny)
    session = model.new_session()
    rng = np.random.default_rng(0)
    channels, high, wide, patch = (int(tiny[n]) for n in ("Channels", "Height", "Width", "Patch"))  # type: ignore[arg-type]
    pixels = rng.standard_normal((3, channels, high, wide)).astype(np.float32)
    rows, columns = high // patch, wide // patch
    mask = np.ones((3, rows, columns), bool)
    mask[1, 4:] = False
    other = pixels.copy()
    other[1, :, 4 * patch :] = 50 * rng.standard_normal(other[1, :, 4 * patch :].shape)

    def run(given: Any, *seen: Any) -> Any:
        return np.asarray(session.numpy(session.run_entry(ENTRIES[name], [given, *seen])), np.float64)

    masked = run(pixels, mask.reshape(3, -1))
    np.testing.assert_allclose(run(other, mask.reshape(3, -1)), masked, atol=1e-5)
    np.testing.assert_allclose(run(pixels[1:2], mask[1:2].reshape(1, -1)), masked[1:2], atol=1e-5)
    whole = run(pixels)
    np.testing.assert_allclose(whole[[0, 2]], masked[[0, 2]], atol=1e-5)
    assert np.abs(whole[1] - masked[1]).max() > 1e-3
