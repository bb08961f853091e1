"""Samples: what came of an input, beside what the reference library made of it."""

from __future__ import annotations

from nest.catalog.facts import Facts
from nest.catalog.readme import Readme
from nest.catalog.samples import show
from nest.catalog.section import Section

__all__ = ["section"]


def section(facts: Facts, readme: Readme) -> Section:
    """Every sample of `samples.json`."""
    shown = show(facts.entry)
    return Section("Samples", "samples", shown.html, shown.files, ("samples.js",) if shown.timed else ())
