"""Entries made for a test: a valid one, changed where the test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CARD = """\
[model]
name = "whisper-tiny"
title = "Whisper tiny"
summary = "A speech recognition model."
license = "Apache-2.0"
family = "whisper"
tags = ["automatic-speech-recognition", "audio"]
[links]
huggingface = "https://huggingface.co/openai/whisper-tiny"
[source]
path = "model.py"
root = "Model"
entry = "encode"
[generics]
D = 384
T = "f32"
[check]
B = 1
[weights]
repo = "openai/whisper-tiny"
revision = "169d4a4341b33bc18d8881c4b69c2e104e1cc0af"
files = ["model.safetensors"]
bindings = "bindings.json"
"""

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write an entry folder: the card with `(old, new)` replacements and more text, and its files."""

    def write(
        *changes: tuple[str, str],
        more: str = "",
        bindings: Any = None,
        samples: Any = None,
        model: str = "class Model:\n    pass\n",
    ) -> Path:
        folder = tmp_path / "entry"
        folder.mkdir(exist_ok=True)
        text = CARD
        for old, new in changes:
            if old not in text:
                raise ValueError(f"the card has no {old!r}")
            text = text.replace(old, new)
        (folder / "nest.toml").write_text(text + more, encoding="utf-8")
        (folder / "model.py").write_text(model, encoding="utf-8")
        (folder / "bindings.json").write_text(_text(bindings or {"a": "b"}), encoding="utf-8")
        if samples is not None:
            (folder / "samples.json").write_text(_text(samples), encoding="utf-8")
        return folder

    return write


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, indent=1)
