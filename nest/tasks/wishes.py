"""What a caller may ask of a generated text, checked before any work."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, SupportsIndex, TypedDict

from nest._suggest import aside
from nest.errors import CallError, InputError

__all__ = ["Settings", "Wishes", "wishes_of"]


_LARGEST_ID = 2**31 - 1


class Settings(TypedDict, total=False):
    """The keyword arguments that every way to generate takes; what each means says `Wishes`."""

    max_tokens: int | None
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    seed: int | Sequence[int]
    stop: str | Sequence[str]
    stop_tokens: Sequence[int]


@dataclass(frozen=True)
class Wishes:
    """How a text is to be chosen and where it is to end.

    Attributes:
        max_tokens: at most so many tokens; the checkpoint's own limit, or 256, if None, and as room allows.
        temperature: of the distribution that tokens are drawn from; 0 takes the most likely token every time.
        top_k: draw from so many most likely tokens; 0 for all.
        top_p: draw from the most likely tokens that together have this probability; 1 for all.
        min_p: leave out tokens less likely than so many times the most likely one; 0 for none.
        repetition_penalty: over 1, tokens of the prompt and the text so far become less likely; 1 for none. It moves
            the most likely token as well.
        seed: of all texts, or one for each prompt: the same tokens every time, and nearly the same on every backend.
        stop: strings that end the text, which is cut before them.
        stop_tokens: ids that end the text, beside the checkpoint's own.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | tuple[int, ...] = 0
    stop: tuple[str, ...] = ()
    stop_tokens: tuple[int, ...] = ()

    @property
    def entry(self) -> str:
        """The loop that chooses so: see `nest.loops.proceed`."""
        if self.temperature > 0 and (self.top_k or self.top_p < 1):
            return "proceed_of_top"
        return "proceed" if self.temperature == 0 and self.repetition_penalty == 1 else "proceed_drawn"


def wishes_of(settings: Settings) -> Wishes:
    """Check keyword arguments.

    Raises:
        CallError: there is no such argument.
        InputError: a value that means nothing.
    """
    given: dict[str, Any] = dict(settings)
    names = [field.name for field in fields(Wishes)]
    for name in given:
        if name not in names:
            raise CallError(
                f"Generating text takes no argument '{name}'{aside(name, names)}; it takes {', '.join(names)}."
            )
    if isinstance(given.get("stop"), str):
        given["stop"] = (given["stop"],)
    for name in ("stop", "stop_tokens"):
        if name in given:
            given[name] = _several(name, () if given[name] is None else given[name])
    if not isinstance(given.get("seed", 0), SupportsIndex):
        given["seed"] = _several("seed", given["seed"])
    made = Wishes(**given)
    _check(made)
    return made


_SEVERAL = {
    "stop": "a text, or several in a list",
    "stop_tokens": "ids in a list",
    "seed": "an integer from 0, or a list with one for each prompt; left out, it is 0",
}


def _several(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, Iterable):
        raise InputError(f"{name}={value!r}: expected {_SEVERAL[name]}.")
    return tuple(value)


def _check(wishes: Wishes) -> None:
    if wishes.max_tokens is not None:
        _count("max_tokens", wishes.max_tokens, 1)
    _count("top_k", wishes.top_k, 0)
    _number("temperature", wishes.temperature, "a number from 0", lambda x: x >= 0)
    _number("top_p", wishes.top_p, "a probability over 0 and up to 1", lambda x: 0 < x <= 1)
    _number("min_p", wishes.min_p, "a share from 0 to 1", lambda x: 0 <= x <= 1)
    _number("repetition_penalty", wishes.repetition_penalty, "a number over 0, 1 for none", lambda x: x > 0)
    for seed in wishes.seed if isinstance(wishes.seed, tuple) else (wishes.seed,):
        _count("seed", seed, 0)
    for token in wishes.stop_tokens:
        _count("stop_tokens", token, 0)
        if operator.index(token) > _LARGEST_ID:
            raise InputError(
                f"stop_tokens={token!r} is no id of a token: it is over {_LARGEST_ID}, the largest int32."
            )
    for text in wishes.stop:
        if not isinstance(text, str) or not text:
            raise InputError(
                f"stop={text!r} is no string that a text could end with; expected one or more letters."
            )


def _count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < least:
        raise InputError(f"{name}={value!r} is no integer from {least}.")


def _number(name: str, value: Any, expected: str, holds: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={value!r} is no number; expected {expected}.")
    if not math.isfinite(value) or not holds(value):
        raise InputError(f"{name}={value!r}: expected {expected}.")
