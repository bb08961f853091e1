"""MkDocs' hook: the catalog is written before a site is made of it, so that no page can be older than its entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nest.catalog import build
from nest.catalog.markup import escape
from nest.catalog.words import TASKS
from nest.errors import NestError
from nest.registry import cards

__all__ = ["on_config", "on_page_content", "on_post_page"]

FOLDER = "models"

_VERBATIM = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
_REFERENCE = re.compile(r'\s*<link rel="stylesheet" href="[^"]*_mkdocstrings\.css"\s*/?>')
_PLAIN = re.compile(r'<span class="(?:n|o|p|w)">([^<]*)</span>')


def on_config(config: Any) -> Any:
    """Write the pages below `docs_dir`, and give each its place in the navigation, by task."""
    try:
        build(Path(config["docs_dir"]) / FOLDER)
    except NestError as error:
        from mkdocs.exceptions import Abort  # MkDocs alone calls this

        raise Abort(str(error)) from None
    groups: dict[str, list[dict[str, str]]] = {title: [] for title in TASKS.values()}
    for card in cards()[0]:
        if card.trusted:
            groups.setdefault(TASKS.get(card.task or "", "others"), []).append(
                {escape(card.title): f"{FOLDER}/{card.name}/index.md"}
            )
    models = [f"{FOLDER}/index.md", *({title: pages} for title, pages in groups.items() if pages)]
    config["nav"] = [{"Models": models} if item == {"Models": FOLDER} else item for item in config["nav"]]
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Take away the marks of names, spaces, operators and punctuation in code: more than half of a page's bytes, for
    what looks like the text around it."""
    return _PLAIN.sub(r"\1", html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take away the theme's indentation, a seventh of a page, and from pages that have no reference its styles."""
    if not page.file.src_uri.startswith("reference/"):
        output = _REFERENCE.sub("", output)
    parts = _VERBATIM.split(output)
    # A part, then what is verbatim, then its tag's name, and so on.
    return "".join(
        part if at % 3 else re.sub(r"\s*\n\s*", "\n", part) for at, part in enumerate(parts) if at % 3 != 2
    )
