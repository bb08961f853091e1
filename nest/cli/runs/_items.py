"""What `nest run` works on, and what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from nest.errors import InputError
from nest.registry import Entry, Sample

__all__ = [
    "Answer",
    "Item",
    "lines_of_standard_input",
    "sample_items",
    "standard_input",
    "text_of_standard_input",
    "texts_of",
]


@dataclass(frozen=True)
class Item:
    """One input, what to call it, and the sample that it is of."""

    label: str
    source: Any
    sample: Sample | None = None


@dataclass(frozen=True)
class Answer:
    """What came of an item.

    Attributes:
        text: for a person; empty where it comes in pieces.
        facts: for programs, beside the item's label and the model's name; made after the pieces are out.
        expected: what the item's sample says should come, where it does. note: what it says where it does not.
        pieces: the text as it is made, for a terminal.
    """

    text: str
    facts: Mapping[str, Any]
    expected: str | None = None
    note: str | None = None
    pieces: Iterable[str] | None = None


def sample_items(entry: Entry, what: str) -> list[Sample]:
    """The entry's samples, where no input is given.

    Raises:
        InputError: it has none; `what` says what to give.
    """
    if not entry.samples:
        raise InputError(f"'{entry.name}' has no sample: give {what}.")
    return list(entry.samples)


def standard_input() -> BinaryIO:
    """Standard input as bytes.

    Raises:
        InputError: it is closed.
    """
    if sys.stdin is None:
        raise InputError("'-' is standard input, which whoever started this has closed: give a FILE.")
    return sys.stdin.buffer


def text_of_standard_input() -> str:
    """All of standard input, as UTF-8, without the line break at its end.

    Raises:
        InputError: it is closed, or is no UTF-8.
    """
    try:
        text = standard_input().read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"Standard input is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}."
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


def lines_of_standard_input() -> list[str]:
    """The lines of standard input that are not blank, as UTF-8.

    Raises:
        InputError: it is closed, is no UTF-8, or has no such line.
    """
    text = text_of_standard_input()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("Standard input is empty: give a line of text for each input.")
    return lines


def texts_of(inputs: Iterable[str]) -> list[str]:
    """The texts that were given, `-` standing for the lines of standard input."""
    return [text for given in inputs for text in (lines_of_standard_input() if given == "-" else [given])]
