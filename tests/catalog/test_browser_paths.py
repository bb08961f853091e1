"""A newcomer's ways: from the front page to commands that do what they came for, in three clicks at most.

The commands and the code of the pages that they end on are run by tests/docs and tests/catalog/test_use.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Open = Callable[..., Any]


@pytest.mark.parametrize(
    ("clicks", "ends", "shows"),
    [
        (["Subtitles and long recordings"], "guides/long-audio/", ["nest transcribe", "srt", ".mp4"]),
        (["Models for speech to text", "Whisper tiny", "nnx"], "models/whisper-tiny/", ['backend="nnx"', "nnx.jit"]),
        (["Fine-tune"], "guides/fine-tuning/", ['backend="nnx"', "nnx.Optimizer"]),
        (["Export and eject"], "guides/export-and-eject/", ["--format onnx", "run.py"]),
        (["all-MiniLM-L6-v2"], "models/all-MiniLM-L6-v2/", ["nest.pipeline(", "nest run all-MiniLM-L6-v2"]),
        (["Models for vectors", "MiniLM L6 v2, all data"], "models/all-MiniLM-L6-v2/", ["nest.pipeline("]),
    ],
    ids=["subtitles", "nnx-entry", "nnx-guide", "onnx", "embeddings", "embeddings-by-task"],
)  # fmt: skip
def test_what_somebody_came_for(open_page: Open, clicks: list[str], ends: str, shows: list[str]) -> None:
    page = open_page("")
    root = page.url
    for words in clicks:
        if page.locator(".tabbed-labels:visible").count():
            page.locator(".tabbed-labels label").get_by_text(words, exact=True).first.click()
        else:
            page.locator(".md-content").get_by_role("link", name=words, exact=True).first.click()
            page.wait_for_load_state()
    assert page.url.removeprefix(root).partition("#")[0] == ends
    text = page.locator(".md-content").inner_text()
    assert [words for words in shows if words not in text] == []
