"""Architecture: the program as a diagram, its entries, generics and blocks, and the definition's source."""

from __future__ import annotations

from nest.catalog.facts import Facts
from nest.catalog.markup import fence
from nest.catalog.readme import Readme
from nest.catalog.section import Section
from nest.ir import inspect_text

__all__ = ["section"]


def section(facts: Facts, readme: Readme) -> Section:
    """What the README says, then what the program shows."""
    source = facts.entry.source.read_text(encoding="utf-8")
    text = [readme.section("Architecture"), "### Blocks", fence(inspect_text(facts.program), "text")]
    text += ["### Source { #source }", fence(source, "python")]
    return Section("Architecture", "architecture", "\n\n".join(text))
