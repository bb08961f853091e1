"""A stand-in for a text encoder: it computes on the host, notes every call, and sees only what lengths count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from nest.tasks.text import TextTokenizer

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "cat",
    "dog",
    "sat",
    "on",
    "the",
    "mat",
    "##s",
    ".",
    "i",
]
SIZE = 6


def word_pieces(words: Sequence[str]) -> dict[str, Any]:
    """A `tokenizer.json` of word pieces, which would truncate and pad to three tokens."""
    special = [
        {"id": i, "content": w, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False}
        for i, w in enumerate(words)
        if w.startswith("[")
    ]  # fmt: skip
    around = [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    ]
    ends = {w: {"id": w, "ids": [words.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")}
    return {
        "version": "1.0",
        "truncation": {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 3}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": around, "pair": around, "special_tokens": ends
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {w: i for i, w in enumerate(words)}},
    }  # fmt: skip


def tokenizer(folder: Path, **options: Any) -> TextTokenizer:
    """That of `WORDS`."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(word_pieces(WORDS)), "utf-8")
    return TextTokenizer(path, **{"max_tokens": 12, **options})


class Scripted:
    """Model and session: `embed` gives a text's length and the sums of its ids' powers, `mask_logits_at` what follows.

    The likeliest token of a mask is the one before it in the text plus one.
    """

    def __init__(self, backend: str = "scripted") -> None:
        self.backend = backend
        result = SimpleNamespace(shape=(None, SIZE))
        entry = SimpleNamespace(signature=SimpleNamespace(results=[result]))
        self.program = SimpleNamespace(name="scripted", entries={"embed": entry})
        self.shapes: list[tuple[int, ...]] = []
        self.sessions: list[dict[str, Any]] = []

    def new_session(self, **options: Any) -> Scripted:
        self.sessions.append(options)
        return self

    def numpy(self, value: Any) -> Any:
        return value

    def run_entry(self, name: str, inputs: Sequence[Any]) -> np.ndarray[Any, Any]:
        self.shapes.append(inputs[0].shape)
        return {"embed": self._embed, "mask_logits_at": self._mask}[name](*inputs)

    def _embed(self, tokens: Any, lengths: Any) -> np.ndarray[Any, Any]:
        counted = np.arange(tokens.shape[1]) < lengths[:, None]
        kept = np.where(counted, tokens, 0).astype(np.float32)
        return np.stack([lengths, *((kept ** (p / 2)).sum(1) for p in range(1, SIZE))], 1) / 100

    def _mask(self, tokens: Any, places: Any, lengths: Any) -> np.ndarray[Any, Any]:
        before = np.take_along_axis(tokens, np.maximum(places - 1, 0), 1)
        logits = np.zeros((*places.shape, len(WORDS)), np.float32)
        for row, column in np.ndindex(*places.shape):
            assert places[row, column] < lengths[row] or places[row, column] == 0
            logits[row, column, (before[row, column] + 1) % len(WORDS)] = 3.0
            logits[row, column, 12] = 2.0
        return logits
