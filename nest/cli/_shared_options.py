"""Options that several commands take, in one wording."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from nest.ir.passes.quantize import SCHEMES

__all__ = [
    "NAME",
    "at_least",
    "generics",
    "offline",
    "plan",
    "quantize",
    "quantized",
    "stored",
    "told_quantization",
    "trust",
    "weights_as",
]

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


def stored(command: ArgumentParser) -> None:
    """Add --dtype and --quantize: how weights are kept."""
    command.add_argument(
        "--dtype",
        metavar="TYPE",
        choices=("f32", "f16", "bf16"),
        help="the type of weights, caches and what is computed: f32, f16 or bf16; the entry's own if left out",
    )
    quantize(command)


def quantize(command: ArgumentParser) -> None:
    """Add --quantize."""
    command.add_argument(
        "--quantize",
        metavar="SCHEME",
        type=quantized,
        help="keep weights in fewer bits: int8 or int4, or by parts of the model as in encoder=int8,decoder=int4",
    )


def quantized(text: str) -> str | dict[str, str]:
    """The type of --quantize: what `nest.load` takes; parts are checked when a model's are known."""
    named = [piece.partition("=") for piece in text.split(",")]
    chosen = {part: scheme for part, equals, scheme in named if equals}
    if text in SCHEMES or (
        len(chosen) == len(named) and all(chosen) and set(chosen.values()) <= SCHEMES.keys()
    ):
        return chosen or text
    known = " or ".join(SCHEMES)
    raise ArgumentTypeError(f"{known}, or PART={next(iter(SCHEMES))},... is expected; came '{text:.40}'")


def weights_as(args: Namespace) -> dict[str, Any]:
    """What `nest.load` is given for --dtype and --quantize."""
    asked: Mapping[str, Any] = {"dtype": args.dtype, "quantize": args.quantize}
    return {name: value for name, value in asked.items() if value is not None}


def told_quantization(task: Any) -> None:
    """Say on standard error what became of weights that were quantized."""
    for part in getattr(getattr(task, "model", None), "quantization", ()):
        sys.stderr.write(f"{part}\n")
