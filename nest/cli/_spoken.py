"""What commands say of the language of a recording, and ask of a model before it is fetched."""

from __future__ import annotations

from collections.abc import Mapping

from nest.errors import CallError, InputError
from nest.registry import Entry
from nest.tasks._settings import generation_rules
from nest.tasks.languages import language_code, language_name
from nest.tasks.rules import provisional_prompt_ids

__all__ = ["detected", "refuse_foreign"]


def refuse_foreign(entry: Entry, language: str | None, task: str) -> None:
    """Raise what the transcriber would, before a model is fetched for it.

    Raises:
        CallError: the model does not have the language, or the task: the command is wrong, whatever the recordings.
    """
    code = None if language is None else language_code(language)
    try:
        provisional_prompt_ids(generation_rules(entry), code, task)
    except InputError as error:
        raise CallError(f"{entry.name}: {error}") from error


def detected(likely: Mapping[str, float], channel: int | None = None) -> str:
    """A line that says which language was detected, of the likeliest ones first; `channel` is from 0."""
    code, probability = next(iter(likely.items()))
    where = "" if channel is None else f" of channel {channel + 1}"
    return f"Detected language{where}: {language_name(code)} ({100 * probability:.0f} %)"
