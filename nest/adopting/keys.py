"""What the keys of a `config.json` may hold, each with the reference library's default, and what is said of others."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nest._suggest import did_you_mean

__all__ = [
    "IDLE",
    "Anything",
    "Flag",
    "Idle",
    "Key",
    "Number",
    "Only",
    "Size",
    "Values",
    "finite",
    "read_keys",
    "shown",
]


class UnfitError(Exception):
    """A value that a key may not have here; the message ends the sentence "it is 3, and"."""


@dataclass(frozen=True)
class Size:
    """A count of one or more. `default` is what the reference library takes where the key is absent.

    null is a value where it is the default, and where it is `optional`.
    """

    default: int | None
    optional: bool = False

    def read(self, value: Any) -> int | None:
        """The value, checked. Raises `UnfitError`."""
        if value is None and (self.optional or self.default is None):
            return None
        if type(value) is not int or value < 1:
            raise UnfitError("a whole number of at least 1 is expected")
        return value


@dataclass(frozen=True)
class Number:
    """A finite number."""

    default: float | None

    def read(self, value: Any) -> float | None:
        """The value as a float, checked. Raises `UnfitError`."""
        if value is None and self.default is None:
            return None
        number = finite(value)
        if number is None:
            raise UnfitError("a number is expected")
        return number


@dataclass(frozen=True)
class Flag:
    """True or false."""

    default: bool

    def read(self, value: Any) -> bool:
        """The value, checked. Raises `UnfitError`."""
        if type(value) is not bool:
            raise UnfitError("true or false is expected")
        return value


class Only:
    """A key that the definition has no parameter for: it computes with one of `accepted`.

    Args:
        accepted: the values that mean what the definition does.
        default: the reference library's; the first of `accepted` if left out.
    """

    def __init__(self, *accepted: Any, **default: Any) -> None:
        self.accepted = accepted
        self.default = default.get("default", accepted[0])

    def read(self, value: Any) -> Any:
        """The value, checked. Raises `UnfitError`."""
        if not any(type(one) is type(value) and one == value for one in self.accepted):
            raise UnfitError(f"the definition computes with {' or '.join(map(shown, self.accepted))}")
        return value


@dataclass(frozen=True)
class Anything:
    """A key that the family's own code reads and judges."""

    default: Any = None

    def read(self, value: Any) -> Any:
        """The value as it is."""
        return value


class Idle(Anything):
    """A key that says nothing about what a trained model computes, such as a rate of dropout."""


IDLE = Idle()

Key = Size | Number | Flag | Only | Anything


@dataclass(frozen=True)
class Values(Mapping[str, Any]):
    """Every key of a family with its value, or where absent the reference library's default; `given` is the file."""

    read: Mapping[str, Any]
    given: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.read[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)


def read_keys(config: Mapping[str, Any], keys: Mapping[str, Key]) -> tuple[Values, list[str]]:
    """The values of `keys` in `config`, and a sentence for each key that is in the way."""
    values: dict[str, Any] = {}
    faults = list(_unknown(config, keys))
    for name, key in keys.items():
        value = config.get(name, key.default)
        try:
            values[name] = key.read(value)
        except UnfitError as error:
            held = f"'{name}' is {shown(value)}"
            if name not in config:
                held = f"'{name}' is absent, which means {shown(value)} to the reference library"
            faults.append(f"{held}, and {error}")
    return Values(values, config), faults


def _unknown(config: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    known = list(keys)
    for name, value in config.items():
        if name not in known:
            hint = did_you_mean(name, known)
            yield f"'{name}' = {shown(value)} is no key of this family, so it may change what is computed.{hint}"


def finite(value: Any) -> float | None:
    """A number of the file as a float; None where it is none, or NaN, or more than a float holds."""
    try:
        return float(value) if type(value) in (int, float) and math.isfinite(value) else None
    except OverflowError:  # JSON has integers of any length
        return None


def shown(value: Any) -> str:
    """A value as the file spells it, cut to a readable length."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
