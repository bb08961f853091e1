"""Text to text."""

from __future__ import annotations

from typing import Any

from nest.tasks import _text_settings
from nest.tasks.generate import Generator

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> Generator:
    """The generator of a decoder, with its tokenizer and, where it has one, its chat template."""
    rules = _text_settings.text_rules(model.entry)
    tokenizer = _text_settings.decoder_tokenizer(model.entry, **fetch_options)
    template = _text_settings.chat_template(model.entry, **fetch_options)
    return Generator(model, tokenizer, rules, template, plan=plan)
