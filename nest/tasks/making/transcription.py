"""Speech to text."""

from __future__ import annotations

from typing import Any

from nest.tasks import _settings
from nest.tasks.transcribe import Transcriber

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> Transcriber:
    """The transcriber of a speech model, with its tokenizer."""
    rules = _settings.generation_rules(model.entry)
    mel = _settings.mel_settings(model.entry)
    return Transcriber(model, _settings.tokenizer(model.entry, rules, **fetch_options), rules, mel, plan=plan)
