"""Planting a mistake in an entry's definition, and looking whether the ladder sees it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nest
from nest.registry._definition import load_root
from nest.verify import Setting
from nest.verify.compare import compare
from nest.verify.limits import PROJECT
from nest.verify.records import replay

Mistakes = Mapping[str, tuple[str, str]]


def is_seen(
    setting: Setting, mistake: tuple[str, str], backend: str, folder: Path, *, layers: Sequence[type] = ()
) -> bool:
    """Whether some output of a backend leaves its bound where a text of the definition is replaced by another.

    The parameters stay those of the right definition.

    Args:
        layers: standard layers whose text counts as the definition's.
    """
    before, after = mistake
    text = _with_layers(setting.entry.source.read_text(encoding="utf-8"), layers)
    assert before in text, f"{before!r} is no longer in the definition"
    path = folder / "model.py"
    path.write_text(text.replace(before, after), encoding="utf-8")
    root: Any = load_root(path, setting.entry.manifest.source.root)
    generics = {**setting.entry.generics, "T": "f32", **setting.generics}
    model = nest.load(root, backend=backend, weights=setting.params, **generics)
    found = replay(setting.program, model.new_session(Batch=3), setting.records)
    # One call after another, up to the first that is wrong: compiling the rest would only take time.
    return any(
        compare(got, want).relative > PROJECT["f32"]
        for position, rows in enumerate(found)
        for row, results in zip(setting.records, rows, strict=True)
        for got, want in zip(results, row[position].results, strict=True)
    )


def _with_layers(text: str, layers: Sequence[type]) -> str:
    """The definition with the files of standard layers before it, in place of their imports."""
    for layer in layers:
        imported = f"    {layer.__name__},\n"
        assert text.count(imported) == 1, f"{layer.__name__} is not imported once"
        file = inspect.getsourcefile(layer)
        assert file is not None
        later = text.replace(imported, "").replace("from __future__ import annotations\n", "")
        text = f"{Path(file).read_text(encoding='utf-8')}\n\n{later}"
    return text
