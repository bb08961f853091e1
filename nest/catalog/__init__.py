"""The catalog: pages about every entry, written from the registry itself.

`build` writes Markdown, data and assets to a folder; MkDocs makes the site of them, and another engine could.
"""

from __future__ import annotations

from nest.catalog.build import Report, build

__all__ = ["Report", "build"]
