"""Completing a tokenizer that was stripped of its timestamps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nest.errors import WeightsError
from nest.weights.whisper_tokenizer import complete_tokenizer


def _tokenizer(last: str = "<|notimestamps|>") -> dict[str, Any]:
    return {
        "version": "1.0",
        "added_tokens": [{"id": 50362, "content": last, "special": True}],
        "model": {"type": "BPE", "fuse_unk": False, "vocab": {"Ġé": 0}, "merges": []},
    }


def test_the_timestamps_follow_the_last_token(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text(json.dumps(_tokenizer()), encoding="utf-8")
    complete_tokenizer(source, target)
    text = target.read_text(encoding="utf-8")
    tokens = json.loads(text)["added_tokens"][1:]
    assert [token["id"] for token in tokens] == list(range(50363, 50363 + 1501))
    assert [tokens[index]["content"] for index in (0, 1, 50, 1500)] == [
        "<|0.00|>",
        "<|0.02|>",
        "<|1.00|>",
        "<|30.00|>",
    ]
    assert list(json.loads(text)["model"]) == ["type", "fuse_unk", "byte_fallback", "vocab", "merges"]
    assert '"Ġé"' in text


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", json.dumps(_tokenizer("<|0.00|>")), '{"added_tokens": [], "model": 1}']
)
def test_a_file_that_is_no_such_tokenizer(tmp_path: Path, content: str) -> None:
    source = tmp_path / "source"
    source.write_text(content, encoding="utf-8")
    with pytest.raises(WeightsError, match="is not a Whisper tokenizer without timestamps"):
        complete_tokenizer(source, tmp_path / "target")
    assert list(tmp_path.iterdir()) == [source]
