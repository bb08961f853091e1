"""Whether a value is what a static field is annotated with: `eps: Static[float]` takes no text."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

__all__ = ["accepts"]

_KNOWN = {"int", "float", "bool", "str", "tuple", "None"}


def accepts(annotation: Any, value: Any) -> bool:
    """Whether `value` fits an annotation such as `"Static[int | None]"`.

    An integer is a float too, no number is a bool, and a float is finite. What else is annotated than numbers, text,
    tuples and None is not looked at.
    """
    kinds = _kinds(annotation) if isinstance(annotation, str) else None
    return kinds is None or _fits(value, kinds)


@cache  # every block that is built is asked
def _kinds(annotation: str) -> frozenset[str] | None:
    """What is annotated; None where that is more than is looked at."""
    found = re.fullmatch(r"(?:\w+\.)?Static\[(.*)\]", annotation.strip(), re.S)
    kinds = frozenset(kind.partition("[")[0].strip() for kind in _alternatives(found[1])) if found else None
    return kinds if kinds is not None and kinds <= _KNOWN else None


def _alternatives(text: str) -> list[str]:
    """The parts between bars outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _fits(value: Any, kinds: frozenset[str]) -> bool:
    if value is None or isinstance(value, bool):
        return ("None" if value is None else "bool") in kinds
    if isinstance(value, int):
        return bool(kinds & {"int", "float"})
    if isinstance(value, float):
        return "float" in kinds and math.isfinite(value)
    return type(value).__name__ in kinds
