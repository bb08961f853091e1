"""`nest run`: what it writes, with a scripted transcriber and with the real model."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from nest.errors import InputError
from nest.registry import find
from nest.tasks import Segment, Transcript, Word
from nest.tasks._kinds import Kind

from .conftest import ROOT, Command

JFK = "And so my fellow Americans ask not what your country can do for you, ask what you can do for your country."


class Scripted:
    """Stands in for `nest.pipeline`: writes down what it is asked, and knows what three recordings say."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.calls: list[tuple[Any, dict[str, Any]]] = []

    def pipeline(self, name: str, **options: Any) -> Scripted:
        self.options = {"name": name, **options}
        return self

    def __call__(self, source: Any, **options: Any) -> Transcript:
        self.calls.append((source, options))
        if isinstance(source, str) and source.startswith("bad"):
            raise InputError(f"'{source}' is not audio.")
        text = source.read().decode() if hasattr(source, "read") else f"It is {Path(source).stem}."
        return Transcript(text, (1, 2), "en", 1.23456, (Segment(0.0, 1.23456, f" {text}", (1, 2)),))


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted()
    monkeypatch.chdir(tmp_path)
    for name in ("a.wav", "b.wav", "bad.wav"):
        Path(name).touch()
    monkeypatch.setattr("nest.cli._run.pipeline", script.pipeline)
    monkeypatch.setattr("nest.cli._run.announce_fetch", lambda entry: None)
    monkeypatch.setattr("nest.cli._run.chosen_backend", lambda *, extras, **_: f"the first for {extras[0]}")
    return script


def test_one_file_is_its_text(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "whisper-tiny.en", "a.wav")
    assert (outcome.code, outcome.out) == (0, "It is a.\n")
    assert outcome.err == "Running on the first for audio, plan exact; --backend and --plan choose others.\n"
    assert scripted.calls == [("a.wav", {"language": None, "task": "transcribe"})]
    assert scripted.options == {
        "name": "whisper-tiny.en",
        "task": None,
        "backend": "the first for audio",
        "plan": "exact",
        "local_files_only": False,
        "trust_source": None,
    }


def test_what_is_not_trusted_is_refused_before_anything_is_fetched(
    command: Command, scripted: Scripted, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[Any] = []
    monkeypatch.setattr("nest.cli._run.announce_fetch", fetched.append)
    outcome = command("run", str(stranger), "a.wav")
    assert outcome.code == 1
    assert outcome.err.startswith(
        "nest: error: Entry 'my-whisper' is not of the installed zoo, and loading it"
    )
    assert fetched == []
    assert command("run", str(stranger), "a.wav", "--trust-source").code == 0
    assert [entry.name for entry in fetched] == ["my-whisper"]


def test_options_reach_the_pipeline(command: Command, scripted: Scripted) -> None:
    arguments = (
        "--backend",
        "reference",
        "--plan",
        "fast",
        "--language",
        "de",
        "--task",
        "translate",
        "--offline",
        "--trust-source",
    )
    outcome = command("run", "whisper-tiny", "a.wav", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert scripted.calls == [("a.wav", {"language": "de", "task": "translate"})]
    assert scripted.options == {
        "name": "whisper-tiny",
        "task": None,
        "backend": "reference",
        "plan": "fast",
        "local_files_only": True,
        "trust_source": True,
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("whisper-tiny.en a.wav --language fr", "transcribes English only, and language 'fr' was asked for"),
        ("whisper-tiny.en a.wav --task translate", "transcribes English only, and task 'translate'"),
        ("turbo --task translate", "has no task 'translate'; it has: transcribe. Use one"),
    ],
)
def test_what_a_model_was_not_trained_for_is_wrong_usage(
    command: Command, scripted: Scripted, given: str, said: str
) -> None:
    outcome = command("run", *given.split())
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.err.endswith(" See: nest run --help\n")
    assert scripted.options == {}


def test_words_have_times(command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (Word(" It's", 0.1, 0.32, 0.87654), Word(" <b>.", 10.5, 11.123456, 1.0))
    segment = Segment(0.0, 12.0, " It's <b>.", (1, 2), words)
    made = Transcript("It's <b>.", (1, 2), "en", 12.0, (segment,))
    monkeypatch.setattr(
        Scripted, "__call__", lambda self, source, **options: (asked.update(options), made)[1]
    )
    asked: dict[str, Any] = {}
    outcome = command("run", "whisper-tiny.en", "a.wav", "--word-timestamps")
    assert outcome.out == "0.10   0.32   It's\n10.50  11.12  <b>.\n"
    assert asked == {"language": None, "task": "transcribe", "word_timestamps": True}
    (found,) = json.loads(command("run", "whisper-tiny.en", "a.wav", "--word-timestamps", "--json").out)[
        "segments"
    ]
    assert found["words"] == [
        {"text": " It's", "start": 0.1, "end": 0.32, "probability": 0.8765},
        {"text": " <b>.", "start": 10.5, "end": 11.123, "probability": 1.0},
    ]


def test_several_files_are_headed_by_their_names(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "whisper-tiny.en", "a.wav", "b.wav")
    assert outcome.out == "a.wav\nIt is a.\n\nb.wav\nIt is b.\n"


def test_a_bad_file_among_several_is_named_and_the_others_done(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "whisper-tiny.en", "a.wav", "bad.wav", "b.wav")
    assert outcome.code == 1
    assert outcome.err.endswith("\nnest: error: 'bad.wav' is not audio.\n")
    assert outcome.out == "a.wav\nIt is a.\n\nb.wav\nIt is b.\n"
    assert len(scripted.calls) == 3


def test_what_a_terminal_obeys_in_the_name_of_a_bad_file_is_spelled_out(
    command: Command, scripted: Scripted
) -> None:
    outcome = command("run", "whisper-tiny.en", "a.wav", "bad\x1b[2J.wav")
    assert "\x1b" not in outcome.err
    assert "bad\\x1b[2J.wav" in outcome.err


def test_standard_input(command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    assert command("run", "whisper-tiny.en", "-").out == "from a pipe\n"


def test_json_is_one_object_a_line(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "whisper-tiny.en", "a.wav", "b.wav", "--json")
    first, second = (json.loads(line) for line in outcome.out.splitlines())
    assert first == {
        "file": "a.wav",
        "model": "whisper-tiny.en",
        "text": "It is a.",
        "language": "en",
        "language_probability": None,
        "duration": 1.235,
        "segments": [{"start": 0.0, "end": 1.235, "text": " It is a."}],
    }
    assert second["file"] == "b.wav"


def test_without_files_the_sample_is_shown_beside_what_is_expected(
    command: Command, scripted: Scripted
) -> None:
    outcome = command("run", "whisper-tiny.en")
    assert outcome.out.startswith(
        f"jfk.wav   It is jfk.\nexpected  {JFK}\n\nlibrivox_0870.wav  It is librivox_0870.\n"
    )
    assert [Path(source) for source, _ in scripted.calls] == sorted((ROOT / "assets" / "audio").glob("*.wav"))
    first, *_ = command("run", "whisper-tiny.en", "--json").out.splitlines()
    assert json.loads(first)["expected"] == JFK


def test_a_sample_that_nobody_measured_says_so(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "whisper-tiny")
    assert "expected  Not measured" in outcome.out
    assert json.loads(command("run", "whisper-tiny", "--json").out)["expected"] is None


def test_a_sample_that_does_not_ship(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, *_ = find("whisper-tiny.en").samples
    entry = find("whisper-tiny.en")
    monkeypatch.setattr(entry, "samples", [sample.model_copy(update={"audio": "elsewhere.wav"})])
    assert command("run", "whisper-tiny.en").err == (
        "nest: error: The sample of 'whisper-tiny.en' is 'elsewhere.wav', which does not come with nest: give a "
        "FILE of your own.\n"
    )
    monkeypatch.setattr(entry, "samples", [])
    assert (
        command("run", "whisper-tiny.en").err
        == "nest: error: 'whisper-tiny.en' has no sample: give a FILE.\n"
    )


@pytest.mark.weights
def test_the_real_model_transcribes_its_sample(process: Command) -> None:
    outcome = process("run", "whisper-tiny.en")
    assert outcome.code == 0
    assert outcome.out.startswith(f"jfk.wav   {JFK}\nexpected  {JFK}\n\n")
    for pair in outcome.out.split("\n\n"):
        got, expected = pair.splitlines()
        assert got.split(maxsplit=1)[1] == expected.split(maxsplit=1)[1]


@pytest.mark.weights
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("nowhere.wav", "nowhere.wav"),
        ("README.md", "README.md"),
        ("assets", "is a directory"),
    ],
)
def test_a_file_that_is_no_recording(process: Command, file: str, words: str) -> None:
    outcome = process("run", "whisper-tiny.en", file)
    assert (outcome.code, outcome.out) == (1, "")
    (message,) = [
        line for line in outcome.err.splitlines() if not line.startswith(("Fetching ", "Running on "))
    ]
    assert message.startswith("nest: error: ")
    assert words in message


def test_offline_without_the_files_is_an_error(process: Command, tmp_path: Path) -> None:
    environment = os.environ | {"HF_HOME": str(tmp_path / "hub"), "NEST_CACHE": str(tmp_path / "nest")}
    outcome = process("run", "whisper-tiny.en", "assets/audio/jfk.wav", "--offline", env=environment)
    assert (outcome.code, outcome.out) == (1, "")
    assert "\nnest: error: 'model.safetensors' of 'whisper-tiny.en' is not in the cache" in outcome.err
    assert "nest pull whisper-tiny.en" in outcome.err


@pytest.mark.parametrize("path", ["no/such.wav", "a" * 5000])
def test_a_file_that_is_not_there_is_said_before_anything_is_fetched(
    command: Command, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("nest.cli._run.pipeline", lambda *_, **__: pytest.fail("it made the model"))
    monkeypatch.setattr("nest.cli._run.announce_fetch", lambda _: pytest.fail("it went to fetch"))
    outcome = command("run", "whisper-tiny.en", path)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(
        ("nest: error: There is no file 'no/such.wav'.", "nest: error: The audio file 'aaa")
    )


def test_options_of_another_kind_of_task_are_refused(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Kind("image-classification", "transcription", ())
    monkeypatch.setattr("nest.cli._run.kind_of", lambda entry, wanted: other)
    outcome = command("run", "whisper-tiny.en", "a.wav", "--language", "en")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "nest: error: --language is for transcription, and 'whisper-tiny.en' does image-classification. "
        "See: nest run --help\n"
    )


def test_a_kind_that_the_entry_has_not_is_refused(command: Command) -> None:
    outcome = command("run", "whisper-tiny.en", "a.wav", "--kind", "fill-mask")
    assert outcome.code == 2
    assert "'whisper-tiny.en' has no task 'fill-mask'; it has transcription." in outcome.err
