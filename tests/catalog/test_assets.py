"""Styles of parts that several hands write: a class has one home."""

from __future__ import annotations

import re
from collections import defaultdict

from nest.catalog.build import ASSETS

SHARED = {"nest-scroll", "nest-marks"}
"""Of `catalog.css`, for every part; others may say how they stand in theirs."""


def test_a_class_is_laid_out_in_one_file() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for file in ASSETS.glob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for selectors in re.findall(r"(?:^|\})\s*([^{}@]+)\{", text):
            for selector in selectors.split(","):
                last = selector.strip().split(" ")[-1]
                for name in re.findall(r"\.(nest-[\w-]+)", last):
                    homes[name].add(file.name)
    assert len(homes) > 40
    assert {name: files for name, files in homes.items() if len(files) > 1 and name not in SHARED} == {}
