"""`nest run` for text generation: prompts in, what the model says out, shown as it is said."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from nest.cli._text_options import sampling_of
from nest.cli.runs._items import Answer, Item, sample_items, text_of_standard_input
from nest.errors import InputError
from nest.registry import Entry
from nest.tasks.generate import Generator
from nest.tasks.wishes import wishes_of

__all__ = ["answer", "prepare"]

_SHOWN = 72


def prepare(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The prompts that were given, standard input being one, or the entry's samples."""
    wishes_of(sampling_of(args))  # refuses what means nothing before anything is fetched
    chat = _is_chat(entry, args)
    if not args.inputs:
        samples = [s for s in sample_items(entry, "a PROMPT") if s.prompt is not None]
        return [Item(_label(s.prompt or ""), (s.prompt, s.chat), s) for s in samples]
    texts = [_of_standard_input() if given == "-" else given for given in args.inputs]
    return [Item(_label(text), (text, chat)) for text in texts]


def _is_chat(entry: Entry, args: argparse.Namespace) -> bool:
    """Whether a prompt is a user's message: where the model has a template, unless it is asked to go on with it."""
    chat = getattr(args, "chat", False)
    if chat and entry.manifest.chat is None:
        raise InputError(
            f"'{entry.name}' has no chat template: leave --chat out, and it goes on with the text."
        )
    chat = chat or (entry.manifest.chat is not None and not getattr(args, "raw", False))
    if hasattr(args, "system") and not chat:
        raise InputError("--system is a message of a chat, and the prompt is a text to go on with.")
    return chat


def _of_standard_input() -> str:
    text = text_of_standard_input()
    if not text.strip():
        raise InputError(
            "Standard input is empty: give it the text of a prompt, or the prompt in place of '-'."
        )
    return text


def _label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def answer(task: Generator, item: Item, args: argparse.Namespace) -> Answer:
    """What the model says to a prompt."""
    text, chat = item.source
    if args.json or item.sample is not None:
        most = item.sample.max_tokens if item.sample else None
        made = _whole(task, text, chat, args, {} if most is None else {"max_tokens": most})
        facts = {"prompt": text, **asdict(made), "log_probability": round(made.log_probability, 4)}
        sample = item.sample
        if sample is None:
            return Answer(made.text, facts)
        return Answer(made.text, facts, sample.text or sample.reference_text, sample.note)
    return Answer("", {}, pieces=_pieces(task, text, chat, args))


def _whole(task: Generator, text: str, chat: bool, args: argparse.Namespace, own: dict[str, int]) -> Any:
    """With the sample's own settings where none were given."""
    settings: Any = {**own, **sampling_of(args)}
    return task.chat(_messages(text, args), **settings) if chat else task(text, **settings)


def _pieces(task: Generator, text: str, chat: bool, args: argparse.Namespace) -> Iterator[str]:
    if chat:
        stream = task.chat(_messages(text, args), stream=True, **sampling_of(args))
    else:
        stream = task.stream(text, **sampling_of(args))
    yield from stream
    if stream.result.finish == "length":
        count = len(stream.result.tokens)
        sys.stderr.write(f"\nnest: cut after {count} tokens; --max-tokens allows another number.\n")


def _messages(text: str, args: argparse.Namespace) -> list[dict[str, str]]:
    system = getattr(args, "system", None)
    first = [] if system is None else [{"role": "system", "content": system}]
    return [*first, {"role": "user", "content": text}]
