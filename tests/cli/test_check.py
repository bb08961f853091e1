"""`nest check` and `nest lint`: what they print, their JSON, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nest.registry import names

from .conftest import Command


@pytest.fixture(autouse=True)
def _no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("nest.weights.site.machine_file", lambda: tmp_path / "machine.toml")
    monkeypatch.setattr("nest.weights.site.user_file", lambda: tmp_path / "user.toml")
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "nest-cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.delenv("NEST_ZOO", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


def test_the_zoo_is_clean(command: Command) -> None:
    outcome = command("check", "--all")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line for line in outcome.out.splitlines() if line[0] != " "] == [
        *names(),
        f"{len(names())} entries: no fault.",
    ]
    assert " ".join(outcome.out.split()).count("checkpoint not seen: 127.0.0.1:9 cannot be reached") == len(
        names()
    )
    linted = command("lint", "--all")
    assert (linted.code, linted.err) == (0, "")
    assert linted.out.endswith(f"{len(names())} entries: no fault.\n")


def test_one_entry_is_a_line_a_part(command: Command) -> None:
    outcome = command("check", "tiny.en", "--offline")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "whisper-tiny.en"
    assert [line.split()[:2] for line in lines[1:] if line[2] != " "] == [
        ["ok", "manifest"],
        ["ok", "definition"],
        ["note", "bindings"],
        ["ok", "bindings"],
        ["ok", "samples"],
        ["ok", "parity"],
        ["ok", "bench"],
        ["ok", "readme"],
    ]
    assert max(map(len, lines)) <= 100


def test_required_headers_are_a_failure_here(command: Command) -> None:
    outcome = command("check", "whisper-tiny.en", "--require-headers")
    assert outcome.code == 1
    text = " ".join(outcome.out.split())
    assert "FAULT bindings checkpoint not seen: " in text
    assert "--require-headers accepts the checkpoint's own header only" in text


def test_faults_are_counted_over_entries(command: Command, stranger: Path) -> None:
    (stranger / "README.md").unlink()
    outcome = command("check", "whisper-tiny", str(stranger), "--offline")
    assert outcome.code == 1
    assert outcome.out.endswith("2 entries, 1 with faults: my-whisper\n")
    text = " ".join(outcome.out.split())
    assert (
        "not run, and so the bindings were not checked. Entry 'my-whisper' is not of the installed zoo"
        in text
    )


def test_trust_runs_the_definition(command: Command, stranger: Path) -> None:
    (stranger / "model.py").write_text("raise RuntimeError('it ran')\n", "utf-8")
    assert "it ran" not in command("check", str(stranger), "--offline").out
    outcome = command("check", str(stranger), "--offline", "--trust-source")
    assert outcome.code == 1
    assert "RuntimeError: it ran" in outcome.out


def test_as_json(command: Command) -> None:
    outcome = command("check", "--all", "--json")
    found = json.loads(outcome.out)
    assert [(facts["name"], facts["ok"]) for facts in found] == [(name, True) for name in names()]
    outcome = command("lint", "tiny", "--json")
    (facts,) = json.loads(outcome.out)
    assert {finding["level"] for finding in facts["findings"]} == {"ok"}


def test_this_folder(command: Command, stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stranger)
    assert command("lint").out.startswith("my-whisper\n")
    monkeypatch.chdir(stranger.parent)
    for name in ("check", "lint"):
        outcome = command(name)
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err == (
            "nest: error: Give the name of an entry or the path of its folder, or --all; this folder is not an entry.\n"
        )


def test_all_includes_the_folders_of_the_search_path(
    command: Command, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEST_ZOO", str(stranger.parent))
    (stranger / "nest.toml").write_text("[", "utf-8")
    outcome = command("check", "--all", "--offline")
    assert outcome.code == 1
    assert "FAULT  manifest  Entry 'my-whisper' is not valid." in outcome.out
    assert outcome.out.endswith(f"{len(names())} entries, 1 with faults: my-whisper\n")


@pytest.mark.parametrize("name", ["check", "lint"])
def test_an_unknown_entry(command: Command, name: str) -> None:
    outcome = command(name, "wisper-tiny")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("nest: error: No entry is named 'wisper-tiny'. Did you mean 'whisper-tiny'")
