"""`nest prepare`: the sample is answered twice, and what it took and what is kept is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nest.tasks import Segment, Transcript

from .conftest import Command, data


class Scripted:
    def __init__(self, cache: Path) -> None:
        self.options: dict[str, Any] = {}
        self.calls: list[Any] = []
        self.cache = cache

    def pipeline(self, name: str, **options: Any) -> Scripted:
        self.options = {"name": name, **options}
        return self

    def __call__(self, source: Any, **options: Any) -> Transcript:
        self.calls.append(source)
        folder = self.cache / "onnx"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.graph").write_bytes(b"x" * 1500)
        return Transcript("It is.", (1, 2), "en", 1.0, (Segment(0.0, 1.0, " It is.", (1, 2)),))


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "cache"))
    script = Scripted(tmp_path / "cache")
    monkeypatch.setattr("nest.cli._prepare.pipeline", script.pipeline)
    monkeypatch.setattr("nest.cli._prepare.announce_fetch", lambda entry: None)
    monkeypatch.setattr("nest.cli._prepare.chosen_backend", lambda *, extras: "onnx")
    return script


def test_it_answers_the_sample_twice_and_says_what_is_kept(command: Command, scripted: Scripted) -> None:
    outcome = command("prepare", "whisper-tiny.en", "--plan", "fast")
    assert outcome.code == 0, outcome.err
    assert len(scripted.calls) == 2
    assert scripted.calls[0] == scripted.calls[1]
    assert scripted.options["plan"] == "fast"
    lines = outcome.out.splitlines()
    assert lines[0].startswith("whisper-tiny.en on onnx, plan fast, is prepared")
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["fetch", "0.00"], ["load", "0.00"], ["first", "answer"], ["second", "answer"],
    ]  # fmt: skip
    assert "kept in onnx" in outcome.out
    assert lines[-1].startswith("Not kept: each process makes its own sessions of ONNX Runtime")


def test_as_json(command: Command, scripted: Scripted, tmp_path: Path) -> None:
    found = data(command, "prepare", "whisper-tiny.en", "--backend", "torch", "--offline")
    assert found["kept"] == {"onnx": 1500}
    assert found["backend"] == scripted.options["backend"] == "torch"
    assert scripted.options["local_files_only"] is True
    assert found["folder"] == str(tmp_path / "cache")
    assert {"fetch_s", "load_s", "first_s", "second_s", "remains"} <= found.keys()


def test_a_task_that_the_model_does_not_do_is_wrong_usage(command: Command, scripted: Scripted) -> None:
    outcome = command("prepare", "whisper-tiny.en", "--kind", "fill-mask")
    assert outcome.code == 2
    assert "See: nest prepare --help" in outcome.err
    assert not scripted.calls


def test_an_unknown_entry(command: Command, scripted: Scripted) -> None:
    outcome = command("prepare", "whisper-tiny.em")
    assert outcome.code == 1
    assert "whisper-tiny.en" in outcome.err
