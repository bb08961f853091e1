"""`nest chat`: a conversation on a terminal."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from nest._env import check_environment
from nest.cli._fetching import announce_fetch
from nest.cli._format import plain
from nest.cli._shared_options import told_quantization, weights_as
from nest.cli._text_options import sampling_of
from nest.errors import InputError, ManifestError, NestError
from nest.loading import chosen_backend
from nest.registry import find
from nest.tasks import pipeline
from nest.tasks._kinds import kind_of
from nest.tasks.wishes import Settings, wishes_of

__all__ = ["main"]

Messages = list[dict[str, Any]]

_HELP = "/new begins anew, Ctrl-C stops an answer, Ctrl-D ends."


def main(args: argparse.Namespace) -> int:
    check_environment()
    entry = find(args.name)
    kind = kind_of(entry, "text-generation")
    settings = sampling_of(args)
    wishes_of(settings)
    if entry.manifest.chat is None:
        raise InputError(
            f"'{entry.name}' has no chat template; nest run {args.name} TEXT goes on with a text."
        )
    if not (entry.trusted or args.trust_source):
        raise ManifestError(entry.refusal)
    if not args.offline:
        announce_fetch(entry)
    backend = args.backend or chosen_backend(extras=kind.extras, dtype=args.dtype)
    options = {
        "local_files_only": args.offline,
        "trust_source": args.trust_source or None,
        **weights_as(args),
    }
    task = pipeline(args.name, task=kind.name, backend=backend, plan=args.plan, **options)
    told_quantization(task)
    sys.stderr.write(f"{entry.manifest.model.title} on {backend}, plan {args.plan}. {_HELP}\n")
    _talk(task, settings, getattr(args, "system", None))
    return 0


def _talk(task: Any, settings: Settings, system: str | None) -> None:
    first: Messages = [] if system is None else [{"role": "system", "content": system}]
    messages = list(first)
    while True:
        try:
            said = input("> ").strip()
        except EOFError:
            print()
            return
        if said == "/new":
            messages = list(first)
            continue
        if not said:
            continue
        messages.append({"role": "user", "content": said})
        try:
            messages.append({"role": "assistant", "content": _answer(task, messages, settings)})
        except NestError as error:
            # Such as a conversation that has become too long.
            messages.pop()
            sys.stderr.write(f"nest: error: {plain(str(error))} /new begins anew.\n")


def _answer(task: Any, messages: Messages, settings: Settings) -> str:
    """The answer, shown as it comes; as far as it came where Ctrl-C stops it."""
    stream = task.chat(messages, stream=True, **settings)
    shown: list[str] = []
    try:
        for piece in stream:
            shown.append(piece)
            print(piece, end="", flush=True)
    except KeyboardInterrupt:
        stream.close()
    print(flush=True)
    return "".join(shown)
