"""Texts to vectors."""

from __future__ import annotations

from typing import Any

from nest.tasks._settings import text_tokenizer
from nest.tasks.embed import Embedder

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> Embedder:
    """The embedder of a sentence encoder, with its tokenizer and prompts."""
    table = model.entry.manifest.embedding
    tokenizer = text_tokenizer(model.entry, "sentence-embedding", **fetch_options)
    return Embedder(model, tokenizer, prompts=table.prompts if table else None, plan=plan)
