"""`nest eval`: counts and times of a scripted transcriber to the digit, what is kept, what is said of what fails."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from nest.errors import InputError
from nest.registry import find
from nest.registry.evaluations import EvalRun, read_eval
from nest.tasks import Transcript
from nest.tasks.audio import DamagedAudioWarning

from .conftest import ROOT, Command

SAYS = {
    "a": ("Mr. Brown's cat sat.", "Mister Brown is cat, sat on."),  # one word too many
    "b": ("two hundred and one people", "201 people"),  # one number, said in two ways
    "c": ("the colour of it", "color of eat"),  # one missing, another word
}


class ScriptedStream:
    """No segment, and a transcript of two seconds."""

    position = 0.0

    def __init__(self, text: str) -> None:
        self.result = Transcript(text, (), "en", 2.0, ())

    def __enter__(self) -> ScriptedStream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())


class Scripted:
    """Stands in for `nest.pipeline`: each recording takes half a second by the clock, and the load a quarter."""

    def __init__(self) -> None:
        self.now = 0.0
        self.options: dict[str, Any] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def clock(self) -> float:
        return self.now

    def pipeline(self, name: str, **options: Any) -> Scripted:
        self.now += 0.25
        self.options = {"name": name, **options}
        return self

    def stream(self, source: str, **wishes: Any) -> ScriptedStream:
        self.calls.append((Path(source).name, wishes))
        self.now += 0.5
        if Path(source).stem == "bad":
            raise InputError(f"'{source}' holds no audio.")
        return ScriptedStream(SAYS[Path(source).stem][1])


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted()
    monkeypatch.chdir(tmp_path)
    folder = Path("clips")
    folder.mkdir()
    for name, (reference, _) in SAYS.items():
        (folder / f"{name}.wav").touch()
        (folder / f"{name}.txt").write_text(reference)
    monkeypatch.setattr("nest.cli._eval.pipeline", script.pipeline)
    monkeypatch.setattr("nest.cli._eval.announce_fetch", lambda entry: None)
    monkeypatch.setattr("nest.cli._eval.detector", lambda **options: None)
    monkeypatch.setattr("nest.cli._eval.chosen_backend", lambda *, extras: "onnx")
    monkeypatch.setattr("nest.cli._eval.perf_counter", script.clock)
    monkeypatch.setattr("nest.evaluating.evaluate.perf_counter", script.clock)
    return script


def evaluated(command: Command, *more: str) -> Any:
    outcome = command("eval", "whisper-tiny.en", "--data", "clips", "--json", *more)
    return json.loads(outcome.out)


def test_counts_and_times(command: Command, scripted: Scripted) -> None:
    found = evaluated(command)
    # mister brown is cat sat | 201 people | the color of it
    assert found["words"] == {
        "rate": 0.2727,
        "length": 11,
        "substitutions": 1,
        "deletions": 1,
        "insertions": 1,
    }
    assert found["characters"]["length"] == len("mister brown is cat sat") + len("201 people") + len(
        "the color of it"
    )
    assert (found["data"]["name"], found["data"]["recordings"], found["data"]["seconds"]) == ("clips", 3, 6.0)
    # The load and the first call are no part of the real-time factor: 1.5 s for 6 s.
    assert (found["real_time_factor"], found["processing_s"]) == (0.25, 1.5)
    assert (found["load_s"], found["first_s"]) == (0.25, 0.5)
    assert found["normalizers"] == ["english"]
    assert found["settings"] == {
        "backend": "onnx", "plan": "exact", "task": "transcribe", "vad": True, "condition_on_previous_text": True,
    }  # fmt: skip
    assert found["model"] == "whisper-tiny.en"
    assert found["failed"] == []
    second = found["results"][1]
    assert (second["file"], second["reference"], second["text"]) == ("b.wav", *SAYS["b"])
    assert second["words"]["rate"] == 0.0
    names = [name for name, _ in scripted.calls]
    assert names == ["a.wav", "a.wav", "b.wav", "c.wav"]
    assert scripted.calls[0][1]["duration"] == 30.0
    assert "duration" not in scripted.calls[1][1]


def test_what_a_person_reads(command: Command, scripted: Scripted) -> None:
    outcome = command("eval", "whisper-tiny.en", "--data", "clips", "--data-name", "Three clips")
    assert outcome.code == 0
    head, _, rest = outcome.out.partition("\n\n")
    assert head == "whisper-tiny.en on onnx, plan exact: Three clips, 3 recordings, 0:06.0."
    lines = rest.splitlines()
    assert lines[0].split("  ")[0] == "word error rate"
    assert "27.27 %" in lines[0]
    assert "of 11 words 1 are others and 1 are missing; 1 are too many" in lines[0]
    assert "0:01.5 for 0:06.0; load 0.25 s, first call 0.5 s" in lines[2]
    alone = command("eval", "whisper-tiny.en", "--data", "clips", "--limit", "1").out
    assert alone.startswith("whisper-tiny.en on onnx, plan exact: clips, 1 recording, 0:02.0.")


def test_wishes_and_limit(command: Command, scripted: Scripted) -> None:
    given = "--limit 2 --language English --no-vad --batch-size 4 --no-condition-on-previous-text --plan fast"
    found = evaluated(command, *given.split(), "--backend", "torch")
    assert [result["file"] for result in found["results"]] == ["a.wav", "b.wav"]
    assert (scripted.options["plan"], scripted.options["backend"]) == ("fast", "torch")
    assert scripted.calls[1][1] == {
        "timestamps": True, "language": "English", "task": "transcribe", "vad": False, "batch_size": 4,
        "condition_on_previous_text": False,
    }  # fmt: skip


def test_a_folder_of_any_name(command: Command, scripted: Scripted) -> None:
    Path("clips").rename("two\nlines")
    assert evaluated(command, "--data", "two\nlines")["data"]["name"] == "two\N{REPLACEMENT CHARACTER}lines"


def test_damage_is_a_note(command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    def stream(source: str, **wishes: Any) -> ScriptedStream:
        warnings.warn(f"'{source}' is damaged.", DamagedAudioWarning, stacklevel=2)
        return ScriptedStream("x")

    monkeypatch.setattr(scripted, "stream", stream)
    err = command("eval", "whisper-tiny.en", "--data", "clips").err
    assert err.count("nest: note: 'clips/a.wav' is damaged.\n") == 1
    assert "DamagedAudioWarning" not in err


def test_what_fails_is_named_and_the_rest_goes_on(command: Command, scripted: Scripted) -> None:
    for name, text in (
        ("bad.wav", ""),
        ("bad.txt", "x"),
        ("none.wav", ""),
        ("aside.wav", ""),
        ("aside.txt", "(music)"),
    ):
        Path("clips", name).write_text(text)
    SAYS["aside"] = ("(music)", "la la")
    try:
        outcome = command("eval", "whisper-tiny.en", "--data", "clips", "--json", "--save")
    finally:
        del SAYS["aside"]
    found = json.loads(outcome.out)
    assert outcome.code == 1
    assert found["words"]["length"] == 11
    assert [fault["file"] for fault in found["failed"]] == ["none.wav", "aside.wav", "bad.wav"]
    assert "nest: error: none.wav: has no transcript\n" in outcome.err
    assert "bad.wav' holds no audio." in outcome.err
    assert "aside.wav: Nothing is left of its transcript, '(music)'" in outcome.err
    assert "nest: 3 failed, so nothing is saved" in outcome.err
    assert not (find("whisper-tiny.en").directory / "eval.json").is_file()


def test_where_nothing_can_be_heard(command: Command, scripted: Scripted) -> None:
    for path in Path("clips").iterdir():
        path.unlink()
    Path("clips", "bad.wav").touch()
    Path("clips", "bad.txt").write_text("x")
    outcome = command("eval", "whisper-tiny.en", "--data", "clips")
    assert (outcome.code, outcome.out) == (1, "whisper-tiny.en: none of the recordings could be evaluated.\n")
    Path("clips", "bad.txt").write_text("")
    outcome = command("eval", "whisper-tiny.en", "--data", "clips")
    assert (outcome.code, outcome.out) == (1, "")
    assert "bad.wav: has an empty transcript in bad.txt" in outcome.err
    assert "No recording in 'clips' can be evaluated." in outcome.err


def test_a_file_and_a_record_beside_the_entry(command: Command, scripted: Scripted, tmp_path: Path) -> None:
    folder = tmp_path / "whisper-tiny.en"
    shutil.copytree(
        find("whisper-tiny.en").directory, folder, ignore=shutil.ignore_patterns("eval.json", "__pycache__")
    )
    manifest = (folder / "nest.toml").read_text("utf-8")
    (folder / "nest.toml").write_text(
        manifest.replace('path = "model.py"', 'path = "@whisper-tiny.en/model.py"')
    )
    given = ("eval", str(folder), "--trust-source", "--data", "clips", "--save")
    outcome = command(*given, "--output", "found/e.json")
    assert (outcome.code, outcome.err) == (0, f"nest: {folder / 'eval.json'}\n")
    assert json.loads(Path("found/e.json").read_text())["words"]["length"] == 11
    (run,) = read_eval(folder, "whisper-tiny.en")
    assert run.words.rate == 0.2727
    # The same again takes its place; another plan stands beside it.
    command(*given)
    command(*given, "--plan", "fast")
    assert [one.settings["plan"] for one in read_eval(folder, "x")] == ["fast", "exact"]
    (folder / "eval.json").write_text("{}")
    scripted.calls.clear()
    outcome = command(*given)
    assert outcome.code == 1
    assert "expected a list of runs" in outcome.err
    assert scripted.calls == []  # before minutes of measuring


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["whisper-tiny.en"], 2, "The following arguments are required: --data. See: nest eval --help"),
        (
            ["whisper-tiny.en", "--data", "x", "--limit", "0"],
            2,
            "Argument --limit: a whole number, 1 or more",
        ),
        (["whisper-tiny.en", "--data", "x", "--data-name", "a\nb"], 2, "is no name; expected one line"),
        (["whisper-tiny.en", "--data", "x", "--data-name", " "], 2, "is no name; expected one line"),
        (["resnet-18", "--data", "x"], 2, "resnet-18"),
        (["whisper-tiny.en", "--data", "x", "--language", "fr"], 2, "English"),
        (["whisper-tiny.en", "--data", "nowhere"], 1, "'nowhere' is not there"),
    ],
)
def test_wrong_usage(
    command: Command, scripted: Scripted, arguments: list[str], code: int, message: str
) -> None:
    outcome = command("eval", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert scripted.calls == []


def test_without_jiwer(command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jiwer", None)
    outcome = command("eval", "whisper-tiny.en", "--data", "clips")
    assert outcome.code == 1
    assert "pip install 'nest-zoo[eval]'" in outcome.err
    assert scripted.calls == []


@pytest.mark.weights
def test_the_shared_recordings(command: Command) -> None:
    outcome = command(
        "eval", "whisper-tiny.en", "--data", str(ROOT / "assets" / "audio"), "--json", "--plan", "fast"
    )
    found = json.loads(outcome.out)
    assert outcome.code == 0
    assert (found["data"]["recordings"], found["words"]["length"]) == (4, 70)
    assert found["words"]["rate"] == 0.0
    run = {name: value for name, value in found.items() if name in EvalRun.model_fields}
    assert EvalRun.model_validate(run).peak_mib
