"""Options that several commands take, in one wording."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable

__all__ = ["NAME", "at_least", "generics", "offline", "plan", "trust"]

NAME = "an entry's name or alias, the Hub repository that it pins, or the path of its folder"
"""The help of an entry's name."""


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number from `least` on."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise ArgumentTypeError(f"a whole number, {least} or more, is expected; came '{text:.40}'")
        return value

    return number


def generics(command: ArgumentParser, example: str = "") -> None:
    """Add -D, which may be repeated; `example` ends its help."""
    command.add_argument(
        "-D",
        dest="generics",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help=f"another value of a generic{example}",
    )


def offline(command: ArgumentParser) -> None:
    """Add --offline."""
    command.add_argument("--offline", action="store_true", help="use what is on disk; never ask the network")


def plan(command: ArgumentParser) -> None:
    """Add --plan."""
    command.add_argument(
        "--plan",
        choices=("exact", "fast"),
        default="exact",
        help="'fast' packs the weights first and computes the same in fewer, larger pieces; 'exact' if left out",
    )


def trust(command: ArgumentParser) -> None:
    """Add --trust-source."""
    command.add_argument(
        "--trust-source", action="store_true", help="run the definition of an entry that is not of the zoo"
    )
