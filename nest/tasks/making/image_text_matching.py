"""How well pictures and texts go together."""

from __future__ import annotations

from typing import Any

from nest.tasks._image_settings import caption_tokenizer, pixel_settings
from nest.tasks.match import ImageTextMatcher

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> ImageTextMatcher:
    """The matcher of a model, with the tokenizer of its texts."""
    settings = pixel_settings(model.entry)
    tokenizer = caption_tokenizer(model.entry, **fetch_options)
    return ImageTextMatcher(model, settings, tokenizer, plan=plan)
