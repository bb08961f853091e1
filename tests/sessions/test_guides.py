"""The python of the guides runs, one block after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.weights
@pytest.mark.parametrize("page", ["cached-entries", "sessions-and-batches"])
def test_the_python_of_a_guide_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text(encoding="utf-8")
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, page, "exec"), names)
    if page == "cached-entries":
        from nest.tasks import pipeline

        heard = pipeline(names["model"])("assets/audio/jfk.wav")
        assert names["text_ids"].tolist()[:5] == list(heard.tokens)[:5]
