"""What the options of `nest transcribe` may be: read before anything is loaded, and wrong usage where it means nothing.

Each function is a `type` of argparse, whose error names the option and ends the command with code 2.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from math import isfinite

__all__ = [
    "FORMATS",
    "backend",
    "count",
    "formats",
    "length",
    "line",
    "patience",
    "penalty",
    "rows",
    "switch",
    "temperature",
    "threshold",
    "time",
]

FORMATS = ("txt", "srt", "vtt", "tsv", "json")
_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def switch(given: str) -> bool:
    """Whether a word switches on.

    Raises:
        ArgumentTypeError: it is none that switches.
    """
    if given.lower() not in _WORDS:
        raise ArgumentTypeError(f"'{given}' switches nothing; expected one of {', '.join(_WORDS)}.")
    return _WORDS[given.lower()]


def time(given: str) -> float:
    """`90`, `1:30` or `0:01:30.5` in seconds.

    Raises:
        ArgumentTypeError: it is no time.
    """
    try:
        parts = [float(part) for part in given.split(":")]
    except ValueError:
        parts = []
    total = 0.0
    for part in parts:
        total = total * 60 + part
    if not 1 <= len(parts) <= 3 or not all(part >= 0 for part in parts) or not isfinite(total):
        raise ArgumentTypeError(f"{given} is no time: expected seconds such as 90.5, or 1:30.5, or 1:02:03.")
    return total


def length(given: str) -> float:
    """A `time` over 0.

    Raises:
        ArgumentTypeError: it is none.
    """
    seconds = time(given)
    if seconds == 0:
        raise ArgumentTypeError(f"{given} is no length of a recording; expected a time over 0.")
    return seconds


def temperature(given: str) -> float:
    """A finite number from 0.

    Raises:
        ArgumentTypeError: it is none.
    """
    value = _number(given)
    if value is None or value < 0:
        raise ArgumentTypeError(f"{given} is no temperature; expected a number from 0, such as 0.4.")
    return value


def threshold(given: str) -> float:
    """A finite number.

    Raises:
        ArgumentTypeError: it is none.
    """
    value = _number(given)
    if value is None:
        raise ArgumentTypeError(f"{given} is no threshold; expected a number.")
    return value


def patience(given: str) -> float:
    """A finite number over 0.

    Raises:
        ArgumentTypeError: it is none.
    """
    value = _number(given)
    if value is None or value <= 0:
        raise ArgumentTypeError(f"{given} is no patience; expected a number over 0, such as 2.")
    return value


def penalty(given: str) -> float:
    """A number from 0 to 1.

    Raises:
        ArgumentTypeError: it is none.
    """
    value = _number(given)
    if value is None or not 0 <= value <= 1:
        raise ArgumentTypeError(f"{given} is no length penalty; expected a number from 0 to 1.")
    return value


def count(given: str) -> int:
    """An integer from 1.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        value = int(given)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"{given} is no integer from 1.")
    return value


def rows(given: str) -> int:
    """An integer from 1, no more than a search has.

    Raises:
        ArgumentTypeError: it is none.
    """
    from nest.tasks.beams import MOST

    value = count(given)
    if value > MOST:
        raise ArgumentTypeError(f"{given} is no integer from 1 to {MOST}.")
    return value


def line(given: str) -> str:
    """A line that can be printed.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not given.isprintable() or not given.strip():
        raise ArgumentTypeError(f"{given!r} is no name; expected one line of printable text.")
    return given


def formats(given: str) -> tuple[str, ...]:
    """Formats of `FORMATS`, separated by commas, each once; `all` for all.

    Raises:
        ArgumentTypeError: there is no such format.
    """
    wanted = [name.strip().lower() for name in given.split(",")]
    unknown = [name for name in wanted if name not in (*FORMATS, "all")]
    if unknown:
        raise ArgumentTypeError(
            f"There is no output format '{unknown[0]}'; expected {', '.join(FORMATS)} or all."
        )
    return FORMATS if "all" in wanted else tuple(dict.fromkeys(wanted))


def backend(given: str) -> str:
    """The name of a backend, installed or not.

    Raises:
        ArgumentTypeError: there is none of that name.
    """
    from nest.backends import installed
    from nest.errors import CallError

    try:
        installed.backend(given)
    except CallError as error:
        raise ArgumentTypeError(str(error)) from error
    return given


def _number(given: str) -> float | None:
    """The finite number that it is, or None."""
    try:
        value = float(given)
    except ValueError:
        return None
    return value if isfinite(value) else None
