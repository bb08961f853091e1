"""What stands where a token is masked."""

from __future__ import annotations

from typing import Any

from nest.tasks._settings import text_tokenizer
from nest.tasks.fill import MaskFiller

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> MaskFiller:
    """The mask filler of a masked language model, with its tokenizer."""
    tokenizer = text_tokenizer(model.entry, "fill-mask", mask=True, **fetch_options)
    return MaskFiller(model, tokenizer, plan=plan)
