"""`nest list`: the table, its filters, its JSON, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nest.backends.installed import BACKENDS
from nest.cli._list import size_of
from nest.errors import InputError
from nest.loading import BACKENDS as LOADABLE
from nest.registry import entries, names

from .conftest import ROOT, Command, data


def test_list_is_a_table_of_every_entry(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    outcome = command("list")
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["NAME", "TASK", "SIZE", "LICENCE", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == [entry.name for entry in entries()]
    (row,) = [line for line in lines if line.startswith("whisper-tiny.en ")]
    assert row.split() == [
        "whisper-tiny.en",
        "transcription",
        "153",
        "MB",
        "Apache-2.0",
        "Whisper",
        "tiny.en",
    ]
    assert row.index("Whisper") == lines[0].index("TITLE")


def test_list_as_json(command: Command) -> None:
    found = {facts["name"]: facts for facts in data(command, "list")}
    assert list(found) == [entry.name for entry in entries()]
    tiny = found["whisper-tiny.en"]
    assert (tiny["task"], tiny["family"], tiny["license"]) == ("transcription", "whisper", "Apache-2.0")
    assert tiny["size"] == 151060136 + 2405679


def test_list_filters(command: Command) -> None:
    assert {facts["family"] for facts in data(command, "list", "--family", "whisper")} == {"whisper"}
    assert {facts["task"] for facts in data(command, "list", "--task", "transcription")} == {"transcription"}
    assert data(command, "list", "--family", "whisper", "--task", "poetry") == []
    outcome = command("list", "--family", "wisper")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("No entry matches. Families: ")
    assert "whisper" in outcome.err


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--tag", "english"], ["whisper-tiny.en"]),
        (["--tag", "audio", "--tag", "multilingual"], ["whisper-tiny"]),
        (["--tag", "audio", "--tag", "english", "--tag", "multilingual"], []),
        (["--max-size", "153.5MB"], ["whisper-tiny.en"]),
        (["--max-size", "1GB"], ["whisper-tiny", "whisper-tiny.en"]),
        (["--max-size", "153465815"], ["whisper-tiny.en"]),
        (["--max-size", "153465814"], []),
        (["--licence", "apache-2.0"], ["whisper-tiny", "whisper-tiny.en"]),
        (["--license", "MIT"], []),
        (["--backend", "reference"], ["whisper-tiny", "whisper-tiny.en"]),
    ],
)
def test_each_filter(command: Command, filters: list[str], found: list[str]) -> None:
    listed = [facts["name"] for facts in data(command, "list", *filters)]
    assert [name for name in listed if name.startswith("whisper-tiny")] == found


def test_a_backend_that_is_not_installed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nest.backends.installed.find_spec", lambda module: None)
    outcome = command("list", "--backend", "onnx")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == (
        "No entry can run on onnx here: it is not installed (pip install 'nest-zoo[onnx]').\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--backend", "troch"],
            "There is no backend 'troch'; nest has torch, jax, nnx, onnx, reference. Did",
        ),
        (["--max-size", "big"], "--max-size takes a size such as 500MB or 1.5GB; 'big' came."),
    ],
)
def test_a_filter_that_cannot_be(command: Command, arguments: list[str], words: str) -> None:
    outcome = command("list", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"nest: error: {words}")
    assert outcome.err.endswith(" See: nest list --help\n")


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 500_000_000), ("1.5 GB", 1_500_000_000), ("2k", 2000), ("7", 7), (" 3 tb ", 3 * 10**12)],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1 PB", "1e9", "5 MiB", "9" * 400])
def test_no_sizes(text: str) -> None:
    with pytest.raises(InputError):
        size_of(text)


def test_every_backend_that_loads_is_described() -> None:
    assert set(LOADABLE) <= set(BACKENDS)


def test_a_broken_entry_hides_no_other(
    command: Command, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEST_ZOO", str(stranger.parent))
    assert "my-whisper" in command("list").out
    (stranger / "nest.toml").write_text("[model]\n", "utf-8")
    outcome = command("list")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == [
        name for name in names() if name != "my-whisper"
    ]
    assert outcome.err == (
        f"nest: left out: {stranger / 'nest.toml'}, 'model.name': expected one line of text\n"
    )
    assert command("show", "whisper-tiny.en").code == 0


def test_its_json_says_whose_entries_they_are(
    command: Command, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEST_ZOO", str(stranger.parent))
    found = {facts["name"]: facts for facts in data(command, "list")}
    assert (found["my-whisper"]["trusted"], found["whisper-tiny"]["trusted"]) == (False, True)
    assert found["whisper-tiny"]["aliases"] == ["tiny"]
    assert found["whisper-tiny"]["repo"] == "openai/whisper-tiny"
    assert found["my-whisper"]["folder"] == str(stranger)


def test_it_loads_nothing_but_the_standard_library() -> None:
    code = "import sys; from nest.cli import main; main(['list']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in {*done.stderr.split()} - {*bare.stdout.split()}}
    assert "whisper-tiny.en" in done.stdout
    assert {name for name in loaded if name not in sys.stdlib_module_names} == {"nest"}
