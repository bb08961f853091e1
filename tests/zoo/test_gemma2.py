"""The pieces of Gemma 2, an entry without weights: agreement with the reference library, and that mistakes are seen."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from nest.registry import find
from nest.verify import Setting, matrix, setting_of

from .mistakes import Mistakes, is_seen

FOLDER = Path(__file__).resolve().parent.parent / "data" / "gemma2" / "gemma2-2b"
MISTAKES: Mistakes = {
    "scores not capped": ("softcap=self.scores_cap", "softcap=None"),
    "logits not capped": ("tanh(linear(self.norm(x), self.token_embedding) / self.logits_cap) * self.logits_cap",
                          "linear(self.norm(x), self.token_embedding)"),
    "gain without 1": ('.cast("f32") + 1, eps', '.cast("f32"), eps'),
    "embeddings not scaled": (" * int(self.D) ** 0.5", ""),
    "windows in the other layers": ("None if i % 2 else self.window", "self.window if i % 2 else None"),
    "windows everywhere": ("None if i % 2 else self.window", "self.window"),
    "scale of the heads": ("scale=self.scalar**-0.5", "scale=int(self.HeadDim) ** -0.5"),
    "the other GELU": ('activation="gelu_tanh"', 'activation="gelu"'),
    "no norm after attention": ("self.attention_out_norm(self.attention.step(self.attention_norm(x), pos, inv_freq))",
                                "self.attention.step(self.attention_norm(x), pos, inv_freq)"),
}  # fmt: skip


@cache
def tiny(folder: Path) -> Setting:
    return setting_of(find(FOLDER), tiny=True, folder=folder, trust_source=True)


@pytest.mark.reference
def test_torch_and_the_reference_library_agree_with_the_oracle(oracle_folder: Path) -> None:
    rows = [*matrix(tiny(oracle_folder), backends=["torch"])]
    assert [r for r in rows if r.status != "ok"] == []
    assert {r.backend for r in rows} == {"oracle", "transformers", "torch"}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_turns_the_ladder_red(name: str, oracle_folder: Path, tmp_path: Path) -> None:
    assert is_seen(tiny(oracle_folder), MISTAKES[name], "torch", tmp_path)
