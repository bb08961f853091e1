"""Text for a terminal."""

from __future__ import annotations

import json

import pytest

from nest.cli._format import columns, file_size, json_text, paragraph, section, width


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "?"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1937, "1.94 kB"),
        (99_949, "99.9 kB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_600, "1 MB"),
        (151_060_136, "151 MB"),
        (3_087_000_000, "3.09 GB"),
        (10**15, "1000 TB"),
    ],
)
def test_file_size(count: int | None, text: str) -> None:
    assert file_size(count) == text


def test_columns_align_and_cut_the_last() -> None:
    rows = [("a", "bb", "one two three"), ("aaa", "b", "four")]
    assert columns(rows) == "a    bb  one two three\naaa  b   four"
    assert columns(rows, indent=1, last=11) == " a    bb  one two...\n aaa  b   four"
    assert columns([]) == ""
    assert columns([("a", "")]) == "a"


def test_paragraphs_keep_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    lines = paragraph("word " * 30 + "w" * 60, indent=4).splitlines()
    assert all(len(line) <= 50 for line in lines[:-1])
    assert all(line.startswith("    w") for line in lines)
    assert lines[-1] == " " * 4 + "w" * 60


@pytest.mark.parametrize(("columns_", "used"), [("20", 40), ("100", 100), ("400", 110)])
def test_width(monkeypatch: pytest.MonkeyPatch, columns_: str, used: int) -> None:
    monkeypatch.setenv("COLUMNS", columns_)
    assert width() == used


def test_an_empty_section_is_left_out() -> None:
    assert section("Files", "") == ""
    assert section("Files", "  a") == "\nFiles\n  a\n"


def test_json_keeps_the_letters_of_every_language() -> None:
    assert json_text({"text": "naïve 你"}, indent=None) == '{"text": "naïve 你"}'


def test_json_of_a_name_that_is_not_unicode() -> None:
    text = json_text({"file": "a\udcff.wav"}, indent=None)
    assert text.encode() == b'{"file": "a\\udcff.wav"}'
    assert json.loads(text) == {"file": "a\udcff.wav"}
