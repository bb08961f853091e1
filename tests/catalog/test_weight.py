"""No page of the site is heavier than 400 kB before its media, counted from its files: text, styles and scripts."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

MOST = 400_000
LOADED = re.compile(r'<link rel="stylesheet" href="([^"]+)"|<script[^>]* src="([^"]+)"')


def test_every_page_is_light(site: Path) -> None:
    heavy = {}
    pages = [*site.rglob("index.html")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        files = {page.parent / urlsplit(style or script).path for style, script in LOADED.findall(text)}
        weight = len(text.encode()) + sum(file.resolve().stat().st_size for file in files)
        if weight >= MOST:
            heavy[page.parent.relative_to(site).as_posix()] = weight
    assert len(pages) > 60
    assert heavy == {}
