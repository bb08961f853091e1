"""The options of `nest run`: some for every task, others for one kind of task alone."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from nest.cli._shared_options import NAME, offline, plan, stored, trust
from nest.cli._text_options import add_sampling

__all__ = ["foreign", "run"]

Add = Callable[[argparse._ArgumentGroup], None]


@dataclass(frozen=True)
class _Group:
    """The options of some kinds of task. One that is not given leaves no attribute: `getattr(args, name, default)`."""

    title: str
    kinds: tuple[str, ...]
    add: Add


def run(command: argparse.ArgumentParser) -> None:
    """Add them all."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        default=[],
        help="recordings, pictures or texts, by what the model takes ('-' is standard input); its sample if none",
    )
    command.set_defaults(more="inputs")
    command.add_argument(
        "--backend",
        metavar="NAME",
        help="what computes: onnx, torch, jax, nnx or reference; the first of onnx, torch, jax here if left out",
    )
    command.add_argument("--kind", metavar="TASK", help="which of the model's tasks, such as 'fill-mask'")
    command.add_argument("--json", action="store_true", help="one JSON object an input, each on its line")
    plan(command)
    stored(command)
    offline(command)
    trust(command)
    for group in _GROUPS:
        added = command.add_argument_group(group.title, argument_default=argparse.SUPPRESS)
        group.add(added)


def foreign(args: argparse.Namespace, kind: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The options that were given and are of other kinds of task, with these kinds."""
    for group in _GROUPS:
        if kind not in group.kinds:
            for option, name in _names(group).items():
                if hasattr(args, name):
                    yield option, group.kinds


def _names(group: _Group) -> Mapping[str, str]:
    """Each option of a group, and the attribute that it sets."""
    parser = argparse.ArgumentParser(add_help=False)
    group.add(parser.add_argument_group())
    return {action.option_strings[-1]: action.dest for action in parser._actions}


def _speech(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--language", metavar="NAME", help="its name or code; a multilingual model detects it if left out"
    )
    group.add_argument("--task", choices=("transcribe", "translate"), help="what to write")
    group.add_argument("--word-timestamps", action="store_true", help="when each word was said, in seconds")


def _embedding(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--prompt", metavar="NAME", help="which of the model's prompts goes in front, such as 'query'"
    )


def _likeliest(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--top", metavar="N", type=int, help="how many answers, the likeliest first; 5 if left out"
    )


def _generating(group: argparse._ArgumentGroup) -> None:
    how = group.add_mutually_exclusive_group()
    how.add_argument(
        "--chat", action="store_true", help="the prompt is a message of a chat, as where there is a template"
    )
    how.add_argument("--raw", action="store_true", help="the prompt is a text to go on with")
    add_sampling(group)


def _pairing(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--text", metavar="TEXT", action="append", help="what may be on the pictures; may be repeated"
    )


_GROUPS = (
    _Group("speech to text", ("transcription",), _speech),
    _Group("sentence embedding", ("sentence-embedding",), _embedding),
    _Group("fill-mask and classes", ("fill-mask", "image-classification"), _likeliest),
    _Group("text generation", ("text-generation",), _generating),
    _Group("pictures and texts", ("image-text-matching",), _pairing),
)
