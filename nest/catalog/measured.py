"""What was measured of an entry, in the few words of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nest.catalog.facts import Facts

__all__ = ["Speed", "Summary", "summary"]


@dataclass(frozen=True)
class Speed:
    """One measured speed: a number to sort by (more is faster), how it is said, and on what it was measured."""

    value: float
    text: str
    where: str


@dataclass(frozen=True)
class Summary:
    """Backends by whether all of their measured rows were within the tolerances; absent where none was measured."""

    backends: Mapping[str, bool] = field(default_factory=dict)
    cpu: Speed | None = None
    gpu: Speed | None = None


def summary(facts: Facts) -> Summary:
    """The summary of an entry's measured files."""
    return Summary()
