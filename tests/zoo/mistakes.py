"""Planting a mistake in an entry's definition, and looking whether the ladder sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nest
from nest.registry._definition import load_root
from nest.verify import Setting
from nest.verify.compare import compare
from nest.verify.limits import PROJECT
from nest.verify.records import replay

Mistakes = Mapping[str, tuple[str, str]]


def is_seen(setting: Setting, mistake: tuple[str, str], backend: str, folder: Path) -> bool:
    """Whether some output of a backend leaves its bound where a text of the definition is replaced by another.

    The parameters stay those of the right definition.
    """
    before, after = mistake
    text = setting.entry.source.read_text(encoding="utf-8")
    assert before in text, f"{before!r} is no longer in the definition"
    path = folder / "model.py"
    path.write_text(text.replace(before, after), encoding="utf-8")
    root: Any = load_root(path, setting.entry.manifest.source.root)
    generics = {**setting.entry.generics, **setting.generics}
    model = nest.load(root, backend=backend, weights=setting.params, **generics)
    found = replay(setting.program, model.new_session(Batch=3), setting.records)
    # One call after another, up to the first that is wrong: compiling the rest would only take time.
    return any(
        compare(got, want).relative > PROJECT["f32"]
        for position, rows in enumerate(found)
        for row, results in zip(setting.records, rows, strict=True)
        for got, want in zip(results, row[position].results, strict=True)
    )
