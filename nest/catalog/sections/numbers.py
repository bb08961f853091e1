"""Numbers: how exact the entry is on each backend, and how fast."""

from __future__ import annotations

from nest.catalog.facts import Facts
from nest.catalog.readme import Readme
from nest.catalog.section import Section

__all__ = ["section"]


def section(facts: Facts, readme: Readme) -> Section:
    """What the README promises of numbers."""
    return Section("Numbers", "numbers", readme.section("Numerics"))
