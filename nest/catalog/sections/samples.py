"""Samples: what came of an input, beside what the reference library made of it."""

from __future__ import annotations

from nest.catalog.facts import Facts
from nest.catalog.readme import Readme
from nest.catalog.section import Section

__all__ = ["section"]


def section(facts: Facts, readme: Readme) -> Section:
    """Every sample of `samples.json`."""
    return Section("Samples", "samples", "")
