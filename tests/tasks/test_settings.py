from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nest.errors import ManifestError
from nest.registry import find
from nest.tasks import _settings
from nest.tasks.mel import MelSettings
from nest.tasks.rules import prompt_ids


def lacking(name: str, table: str, key: str | None = None) -> Any:
    """The entry `name` without a table of its manifest, or without one key of it."""
    entry = find(name)
    left = getattr(entry.manifest, table).model_copy(update={key: None}) if key else None
    manifest = entry.manifest.model_copy(update={table: left})
    return SimpleNamespace(directory=entry.directory, generics=entry.generics, manifest=manifest)


def read_all(entry: Any) -> None:
    rules = _settings.generation_rules(entry)
    _settings.mel_settings(entry)
    _settings.tokenizer(entry, rules)


def test_the_rules_of_the_english_checkpoint() -> None:
    rules = _settings.generation_rules(find("whisper-tiny.en"))
    assert not rules.multilingual
    assert prompt_ids(rules) == (50257, 50362)
    assert (rules.start, rules.end, rules.no_timestamps, rules.first_timestamp) == (
        50257,
        50256,
        50362,
        50363,
    )
    assert (rules.positions, rules.max_tokens) == (448, 224)
    assert len(rules.suppress) == 90
    assert rules.begin_suppress == (220, 50256)


def test_the_rules_of_the_multilingual_checkpoint() -> None:
    rules = _settings.generation_rules(find("whisper-tiny"))
    assert len(rules.languages) == 99
    assert prompt_ids(rules, "en") == (50258, 50259, 50359, 50363)
    assert prompt_ids(rules, "de", "translate") == (50258, 50261, 50358, 50363)
    assert rules.first_timestamp == 50364
    assert rules.begin_suppress == (220, 50257)


@pytest.mark.parametrize("name", ["whisper-tiny", "whisper-tiny.en"])
def test_the_spectrogram_of_an_entry(name: str) -> None:
    assert _settings.mel_settings(find(name)) == MelSettings()
    assert _settings.mel_settings(find(name)).frames == find(name).generics["Frames"]


def test_the_limit_of_tokens_is_half_the_positions_where_none_is_stated() -> None:
    assert (
        _settings.generation_rules(lacking("whisper-tiny.en", "generation", "max_tokens")).max_tokens == 224
    )


@pytest.mark.parametrize(
    ("table", "key", "named"),
    [
        ("generation", None, "generation"),
        ("generation", "no_timestamps", "generation.no_timestamps"),
        ("generation", "start_of_transcript", "generation.start_of_transcript"),
        ("preprocess", None, "preprocess"),
        ("preprocess", "hop", "preprocess.hop"),
        ("tokenizer", None, "tokenizer"),
    ],
)
def test_a_value_that_is_missing_is_named(table: str, key: str | None, named: str) -> None:
    entry = lacking("whisper-tiny.en", table, key)
    with pytest.raises(ManifestError, match=rf"nest\.toml: the task 'transcription' needs '{named}', and"):
        read_all(entry)


def test_the_tokenizer_is_the_pinned_file(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
    asked: list[list[str]] = []

    def fetch(entry: Any, names: list[str]) -> SimpleNamespace:
        asked.append(names)
        return SimpleNamespace(files=dict.fromkeys(names, tokenizer.path))

    monkeypatch.setattr("nest.weights.fetch", fetch)
    entry = find("whisper-tiny.en")
    result = _settings.tokenizer(entry, _settings.generation_rules(entry))
    assert asked == [["tokenizer.json"]]
    assert isinstance(result.path, Path)
    assert (result.end, result.first_timestamp) == (50256, 50363)
