"""What a repository's files say of text in and text out: tokens that end a text, the chat template."""

from __future__ import annotations

from typing import Any

from nest.adopting.family import Refused, Tables
from nest.adopting.keys import Values, shown
from nest.adopting.repository import Repository

__all__ = ["added_tokens", "decoder_tables", "mask_tables", "tokenizer_table"]


def tokenizer_table(repository: Repository, **more: Any) -> Tables:
    """`[tokenizer]`; empty where the repository has no `tokenizer.json`, the one form that nest reads."""
    if "tokenizer.json" not in repository.names:
        return {}
    return {"tokenizer": {"file": "tokenizer.json", **more}}


def decoder_tables(repository: Repository, values: Values) -> Tables:
    """The tables of text generation; none where no tokenizer or no end of a text is known."""
    tables = tokenizer_table(repository)
    ends = _ends(repository, values)
    if not tables or not ends:
        return {}
    tables["task"] = {"kind": "text-generation"}
    tables["generation"] = {"end_of_text": ends[0], **({"stop": ends[1:]} if ends[1:] else {})}
    if (file := _chat_file(repository)) is not None:
        tables["chat"] = {"file": file}
    return tables


def added_tokens(repository: Repository) -> dict[str, int]:
    """The special tokens of `tokenizer.json`, by their text."""
    content = repository.json("tokenizer.json") or {}
    listed = content.get("added_tokens") or []
    return {
        one["content"]: one["id"]
        for one in listed
        if isinstance(one, dict) and {"content", "id"} <= one.keys()
    }


def _ends(repository: Repository, values: Values) -> list[int]:
    """The tokens that end a text: those of `generation_config.json`, which decoding goes by, else of `config.json`."""
    for source in (repository.json("generation_config.json") or {}, values.given):
        found = source.get("eos_token_id")
        if found is None:
            continue
        ends = found if isinstance(found, list) else [found]
        if not ends or not all(type(one) is int and one >= 0 for one in ends):
            raise Refused(f"'eos_token_id' is {shown(found)}, and a token or a list of tokens is expected")
        return list(dict.fromkeys(ends))
    return []


def _chat_file(repository: Repository) -> str | None:
    if "chat_template.jinja" in repository.names:
        return "chat_template.jinja"
    config = repository.json("tokenizer_config.json") or {}
    return "tokenizer_config.json" if isinstance(config.get("chat_template"), str) else None


def mask_tables(repository: Repository, most: int) -> Tables:
    """The tables of filling in a masked word; none where no tokenizer or no mask is known.

    Args:
        most: tokens that the encoder has positions for.
    """
    mask = _mask(repository)
    tables = tokenizer_table(repository, max_tokens=most, mask=mask)
    return {"task": {"kind": "fill-mask"}, **tables} if tables and mask else {}


def _mask(repository: Repository) -> str | None:
    """How the vocabulary spells the token that stands for a missing one."""
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        given = repository.json(file)
        found = given.get("mask_token") if isinstance(given, dict) else None
        text = found.get("content") if isinstance(found, dict) else found
        if isinstance(text, str) and text:
            return text
    return next((text for text in ("[MASK]", "<mask>") if text in added_tokens(repository)), None)
