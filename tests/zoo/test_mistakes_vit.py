"""The ladder sees mistakes in ViT's definition, on every backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.verify import Setting, setting_of

from .mistakes import Mistakes, is_seen

MISTAKES: Mistakes = {
    "tanh GELU": ("activation=self.activation", 'activation="gelu_tanh"'),
    "epsilon": ("self.norm = LayerNorm(self.D, self.T, eps=self.eps)",
                "self.norm = LayerNorm(self.D, self.T, eps=1e-3)"),
    "no last norm": ("return self.norm(x)", "return x"),
    "no positions": ("axis=1) + self.positions()", "axis=1)"),
    "rows for columns": ("PatchPositions(self.Grid, rows, columns", "PatchPositions(self.Grid, columns, rows"),
    "mask not heeded": ('"bool"), mask]', '"bool"), mask | full((B, self.Patches), True, "bool")]'),
    "class token not seen": ("full((B, 1), True", "full((B, 1), False"),
    "another token": ("mask), 1, 0, 1)", "mask), 1, 1, 2)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def vit(oracle_folder: Path) -> Setting:
    return setting_of("vit-base-patch16-224", tiny=True, folder=oracle_folder)


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_turns_the_ladder_red(name: str, backend: str, vit: Setting, tmp_path: Path) -> None:
    assert is_seen(vit, MISTAKES[name], backend, tmp_path)
