"""The sections of an entry's page, in the order of the page. Each takes what is known of the entry."""

from __future__ import annotations

from collections.abc import Callable

from nest.catalog.facts import Facts
from nest.catalog.readme import Readme
from nest.catalog.section import Section
from nest.catalog.sections import architecture, numbers, provenance, samples, use, weights

__all__ = ["SECTIONS"]

SECTIONS: tuple[Callable[[Facts, Readme], Section], ...] = (
    use.section,
    samples.section,
    architecture.section,
    weights.section,
    numbers.section,
    provenance.section,
)
