"""Options about how a text is chosen, which `nest run` and `nest chat` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from nest.tasks.wishes import Settings

__all__ = ["add_sampling", "sampling_of"]

_NUMBERS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "max_tokens": ("N", int, "at most so many tokens; 256 if left out"),
    "temperature": ("X", float, "draw tokens from the distribution at this temperature; 0, the likeliest, if left out"),
    "top_k": ("N", int, "draw from so many most likely tokens"),
    "top_p": ("X", float, "draw from the most likely tokens that together have this probability"),
    "min_p": ("X", float, "leave out tokens less likely than so many times the most likely one"),
    "repetition_penalty": ("X", float, "over 1, what was said before becomes less likely"),
    "seed": ("N", int, "of the chance: the same one gives the same text; 0 if left out"),
}  # fmt: skip


def add_sampling(group: argparse._ActionsContainer) -> None:
    """Add them; each is an argument of `nest.tasks.Generator`, and leaves no attribute where it is not given."""
    for name, (metavar, kind, text) in _NUMBERS.items():
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, metavar=metavar, type=kind, help=text, default=argparse.SUPPRESS)
    group.add_argument(
        "--stop",
        metavar="TEXT",
        action="append",
        help="end before this text; may be repeated",
        default=argparse.SUPPRESS,
    )
    group.add_argument(
        "--system", metavar="TEXT", help="a system message before the chat", default=argparse.SUPPRESS
    )


def sampling_of(args: argparse.Namespace) -> Settings:
    """The settings that were given."""
    return cast(
        "Settings", {name: getattr(args, name) for name in (*_NUMBERS, "stop") if hasattr(args, name)}
    )
