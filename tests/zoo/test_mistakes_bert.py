"""The ladder sees mistakes in the definitions of BERT's family and of ModernBERT, on every backend."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from nest.verify import Setting, setting_of

from .mistakes import Mistakes, is_seen

ATTEND = "attention(q, k, v, kv_len=lengths)"
SENTENCES: Mistakes = {
    "tanh GELU": ("gelu(self.up(x))", "gelu(self.up(x), approximate=True)"),
    "missing scale": (ATTEND, "attention(q, k, v, kv_len=lengths, scale=1.0)"),
    "padding seen": (ATTEND, "attention(q, k, v)"),
    "epsilon": ("self.embedding_norm = LayerNorm(self.D, self.T, eps=self.eps)",
                "self.embedding_norm = LayerNorm(self.D, self.T, eps=1e-3)"),
    "pre-norm": ("self.mlp_norm(x + self.mlp(x))", "x + self.mlp(self.mlp_norm(x))"),
    "no types": (" + take(self.type_embeddings, types)", ""),
    "a place too many in the mean": ("< lengths.reshape(B, 1, 1)", "<= lengths.reshape(B, 1, 1)"),
    "not scaled": ("if self.normalize:", "if not self.normalize:"),
}  # fmt: skip
FIRST_TOKENS: Mistakes = {
    "mean in place of the first token": ('self.pooling == "mean"', "True"),
    "second token": ("x = slice(x, 1, 0, 1)", "x = slice(x, 1, 1, 2)"),
}
MASKS: Mistakes = {
    "positions from the first row": ("0, self.first_position, S + self.first_position)", "0, 0, S)"),
    "head without its norm": ("self.head_norm(gelu(self.head(x)))", "gelu(self.head(x))"),
    "another place": ("places.reshape(B, M, 1)", "places.reshape(B, M, 1) * 0"),
}
PAIRS: Mistakes = {"pooled without tanh": ("tanh(self.pooler(first))", "self.pooler(first)")}
MODERN: Mistakes = {
    "wider window": ("<= self.window // 2", "<= self.window"),
    "window ignored": ("mask=near if self.local else None", "mask=None"),
    "window everywhere": ("mask=near if self.local else None", "mask=near"),
    "padding seen": ("kv_len=lengths, ", ""),
    "one theta": ("nearby if local else everywhere", "everywhere"),
    "pairs side by side": ("self.key(x), self.Heads), start, inv_freq)",
                           'self.key(x), self.Heads), start, inv_freq, layout="interleaved")'),
    "another gate": ('activation="gelu"', 'activation="silu"'),
    "no last norm": ("return self.final_norm(x)", "return x"),
}  # fmt: skip
EVERY = {
    "all-MiniLM-L6-v2": SENTENCES,
    "bge-small-en-v1.5": FIRST_TOKENS,
    "roberta-base": MASKS,
    "bert-base-uncased": PAIRS,
    "modernbert-base": MODERN,
}


@cache
def tiny(name: str, folder: Path) -> Setting:
    return setting_of(name, tiny=True, folder=folder)


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
@pytest.mark.parametrize(("entry", "name"), [(e, n) for e, found in EVERY.items() for n in found])
def test_a_mistake_turns_the_ladder_red(
    entry: str, name: str, backend: str, oracle_folder: Path, tmp_path: Path
) -> None:
    assert is_seen(tiny(entry, oracle_folder), EVERY[entry][name], backend, tmp_path)
