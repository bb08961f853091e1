"""The guide's snippets run, on a small copy of the entry that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.checking.readme import snippets

from ..zoo.small import byte_level_tokenizer, run, small_entry
from ..zoo.test_readme_decoders import END, SMALL, TEMPLATE

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "generate-text.md"


def test_the_guide_s_snippets_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "tokenizer.json": byte_level_tokenizer(END, {"<|end|>": END}),
        "tokenizer_config.json": {"chat_template": TEMPLATE, "eos_token": "<|end|>"},
    }
    small_entry("smollm2-135m-instruct", SMALL, files, tmp_path, monkeypatch, facts={"end_of_text": END})
    names = run(s.code for s in snippets(GUIDE.read_text("utf-8")) if s.language == "python")
    assert names["stream"].result.text in capsys.readouterr().out
    assert names["tale"].prompt_tokens > 0
    assert names["made"].finish in ("stop", "length")
