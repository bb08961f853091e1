"""Read what text generation needs from an entry's manifest."""

from __future__ import annotations

from typing import Any

from nest.registry import Entry
from nest.tasks._settings import present
from nest.tasks._text_rows import TextRules
from nest.tasks.chat import ChatTemplate, read_template
from nest.tasks.text_tokens import DecoderTokenizer

__all__ = ["chat_template", "decoder_tokenizer", "text_rules"]

_TASK = "text-generation"


def text_rules(entry: Entry) -> TextRules:
    """Return where the texts of `entry` end, from [generation] and the generic `MaxTokens`.

    Raises:
        ManifestError: a value is missing.
    """
    table = present(entry, entry.manifest.generation, "generation", _TASK)
    generic = entry.generics.get("MaxTokens")
    positions = generic if isinstance(generic, int) else None
    return TextRules(
        ends=(table.end_of_text, *table.stop),
        positions=present(entry, positions, "generics.MaxTokens", _TASK),
        **({} if table.max_tokens is None else {"max_tokens": table.max_tokens}),
    )


def decoder_tokenizer(entry: Entry, **fetch_options: Any) -> DecoderTokenizer:
    """Fetch and read the file of [tokenizer], with what `nest.weights.fetch` takes as options.

    Raises:
        ManifestError: the entry names none.
        FetchError, DigestError, WeightsError: it cannot be had, or is not what it should be.
    """
    from nest.weights import fetch

    name = present(entry, entry.manifest.tokenizer, "tokenizer", _TASK).file
    return DecoderTokenizer(fetch(entry, [name], **fetch_options).files[name])


def chat_template(entry: Entry, **fetch_options: Any) -> ChatTemplate | None:
    """Return the template of [chat], fetched where it is a file; None for an entry without that table.

    Raises:
        FetchError, DigestError, WeightsError: the file cannot be had, or has no template.
    """
    from nest.weights import fetch

    table = entry.manifest.chat
    if table is None:
        return None
    if table.file is None:
        return ChatTemplate(table.template or "", table.tokens, name=entry.name)
    path = fetch(entry, [table.file], **fetch_options).files[table.file]
    return read_template(path, table.tokens, name=entry.name)
