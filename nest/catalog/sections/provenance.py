"""Provenance: where the weights, the code and the paper are."""

from __future__ import annotations

from nest.catalog.facts import Facts
from nest.catalog.markup import element, escape
from nest.catalog.readme import Readme
from nest.catalog.section import Section

__all__ = ["section"]

_NAMES = {"huggingface": "Hugging Face Hub", "github": "GitHub", "arxiv": "Paper", "homepage": "Homepage"}


def _link(url: str) -> str:
    """A link, where the text is an address of the web; a manifest may hold any."""
    shown = escape(url)
    return element("a", shown, href=url, rel="noopener") if url.startswith(("https://", "http://")) else shown


def section(facts: Facts, readme: Readme) -> Section:
    """What the README says, and the entry's links."""
    links = facts.entry.manifest.links
    items = [element("li", f"{escape(_NAMES.get(kind, kind))}: {_link(url)}") for kind, url in links.items()]
    listed = element("ul", "".join(items)) if items else ""
    return Section("Provenance", "provenance", f"{readme.section('Provenance')}\n\n{listed}")
