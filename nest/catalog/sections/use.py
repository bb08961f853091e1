"""Use it: the task in Python and in a terminal, then the model itself on each backend."""

from __future__ import annotations

from nest.catalog.facts import Facts
from nest.catalog.readme import Readme
from nest.catalog.section import Section

__all__ = ["section"]


def section(facts: Facts, readme: Readme) -> Section:
    """The entry's own snippets."""
    return Section("Use it", "use", readme.section("Use"))
