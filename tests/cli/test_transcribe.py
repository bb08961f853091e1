"""`nest transcribe`: what it asks, shows and writes, with a scripted transcriber and with the real model."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from nest.cli._transcribe_options import spelled
from nest.errors import InputError
from nest.tasks import Segment, Transcript
from nest.tasks.audio import DamagedAudioWarning

from .conftest import ROOT, Command


class ScriptedStream(Iterator[Segment]):
    """Two segments of a recording, the second of which may fail."""

    seconds = 4.0
    language_probabilities: dict[str, float] | None = None

    def __init__(self, name: str, fails: bool) -> None:
        self.position = 0.0
        self.fails = fails
        self.left = [Segment(0.0, 1.5, f" It is {name}.", (1,)), Segment(1.5, 4.0, " The end.", (2,))]
        self.result = Transcript(f"It is {name}. The end.", (1, 2), "en", 4.0, tuple(self.left))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __next__(self) -> Segment:
        if not self.left:
            raise StopIteration
        if self.fails and len(self.left) == 1:
            raise InputError("There is no audio track in it.")
        self.position += 2.0
        return self.left.pop(0)


class Scripted:
    """Stands in for `nest.pipeline`."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.calls: list[tuple[Any, dict[str, Any]]] = []

    def pipeline(self, name: str, **options: Any) -> Scripted:
        self.options = {"name": name, **options}
        return self

    def stream(self, source: Any, **wishes: Any) -> ScriptedStream:
        self.calls.append((source, wishes))
        name = Path(source).stem if isinstance(source, str) else source.read().decode()
        if name == "killed":
            raise KeyboardInterrupt
        if name == "damaged":
            warnings.warn("damaged.mp3 is damaged: 3 s are used.", DamagedAudioWarning, stacklevel=1)
        return ScriptedStream(name, fails=name == "bad")


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted()
    monkeypatch.chdir(tmp_path)
    for name in ("a.mp3", "b.mp4", "bad.wav", "damaged.mp3"):
        Path(name).touch()
    monkeypatch.setattr("nest.cli._transcribe.pipeline", script.pipeline)
    monkeypatch.setattr("nest.cli._transcribe.announce_fetch", lambda entry: None)
    monkeypatch.setattr("nest.cli._transcribe.detector", lambda **options: None)
    monkeypatch.setattr("nest.cli._transcribe.chosen_backend", lambda *, extras, **_: "onnx")
    return script


def names(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def test_text_goes_to_standard_output(command: Command, scripted: Scripted) -> None:
    outcome = command("transcribe", "a.mp3")
    assert (outcome.code, outcome.out) == (0, "It is a.\nThe end.\n")
    assert (
        outcome.err
        == "nest: Whisper tiny.en on onnx, plan exact; --model, --backend and --plan choose others.\n"
    )
    assert names() == ["a.mp3", "b.mp4", "bad.wav", "damaged.mp3"]
    source, wishes = scripted.calls[0]
    assert source == "a.mp3"
    assert wishes == {
        "timestamps": True,
        "language": None,
        "task": "transcribe",
        "start": 0.0,
        "duration": None,
        "channels": "mix",
        "vad": True,
        "batch_size": None,
        "word_timestamps": False,
        "initial_prompt": None,
        "condition_on_previous_text": True,
        "temperature": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        "beam_size": None,
        "patience": None,
        "best_of": None,
        "length_penalty": None,
        "compression_ratio_threshold": 2.4,
        "log_probability_threshold": -1.0,
        "no_speech_threshold": 0.6,
    }


def test_every_wish_reaches_the_transcriber(command: Command, scripted: Scripted) -> None:
    given = (
        "--language German --start 1:02:03.5 --duration 90 --channels split --word_timestamps True "
        "--initial_prompt=Names --condition_on_previous_text False --temperature 0.5 --compression_ratio_threshold 3 "
        "--logprob-threshold -2 --no_speech_threshold 0.7 --model turbo --backend torch --no-vad "
        "--batch_size 8 --best_of 3 --length-penalty 0.6"
    )
    assert command("transcribe", "a.mp3", *given.split()).code == 0
    assert scripted.options["name"] == "turbo"
    assert scripted.options["backend"] == "torch"
    assert scripted.calls[0][1] == {
        "timestamps": True,
        "language": "German",
        "task": "transcribe",
        "start": 3723.5,
        "duration": 90.0,
        "channels": "split",
        "vad": False,
        "batch_size": 8,
        "word_timestamps": True,
        "initial_prompt": "Names",
        "condition_on_previous_text": False,
        "temperature": [0.5, 0.7, 0.9],
        "beam_size": None,
        "patience": None,
        "best_of": 3,
        "length_penalty": 0.6,
        "compression_ratio_threshold": 3.0,
        "log_probability_threshold": -2.0,
        "no_speech_threshold": 0.7,
    }


def test_beams_reach_the_transcriber(command: Command, scripted: Scripted) -> None:
    assert command("transcribe", "a.mp3", *["--beam_size", "5", "--patience=2", "--best-of", "5"]).code == 0
    wishes = scripted.calls[0][1]
    named = ("beam_size", "patience", "best_of", "length_penalty", "temperature")
    assert [wishes[name] for name in named] == [5, 2.0, 5, None, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--word_timestamps True a_b.mp3", "--word-timestamps a_b.mp3"),
        ("--word_timestamps=False a.mp3", "a.mp3"),
        ("--word-timestamps a.mp3", "--word-timestamps a.mp3"),
        ("--condition_on_previous_text True", ""),
        ("--condition_on_previous_text=False", "--no-condition-on-previous-text"),
        ("--output_dir my_files --model=a_b", "--output-dir my_files --model=a_b"),
        ("-- --a_b --word_timestamps True", "-- --a_b --word_timestamps True"),
        ("--word-timestamps=yes --word-timestamps=1", "--word-timestamps"),
        ("--word-timestamps --word_timestamps False a.mp3", "a.mp3"),
        ("--word_timestamps False --word-timestamps", "--word-timestamps"),
        ("--condition_on_previous_text False --condition_on_previous_text True", ""),
        ("--no-condition-on-previous-text --condition-on-previous-text", ""),
        ("--condition_on_previous_text 1 --no-condition_on_previous_text", "--no-condition-on-previous-text"),
        ("--word-timestamps=On a.mp3", "--word-timestamps a.mp3"),
        ("--word-timestamps=no --word-timestamps=0 --word-timestamps=off", ""),
        ("--word_timestamps on a.mp3", "--word-timestamps a.mp3"),
        ("--condition_on_previous_text False a.mp3", "--no-condition-on-previous-text a.mp3"),
        ("--condition-on-previous-text 0 a.mp3", "--no-condition-on-previous-text a.mp3"),
        ("--condition-on-previous-text a.mp3", "a.mp3"),
    ],
)
def test_other_spellings(given: str, meant: str) -> None:
    assert spelled(given.split()) == meant.split()


def test_files_of_every_format(command: Command, scripted: Scripted) -> None:
    outcome = command("transcribe", "a.mp3", "b.mp4", "--output_dir", "new/texts")
    assert (outcome.code, outcome.out) == (0, "")
    written = names("new/texts")
    assert written == sorted(f"{stem}.{end}" for stem in "ab" for end in ("txt", "srt", "vtt", "tsv", "json"))
    assert Path("new/texts/a.srt").read_text().startswith("1\n00:00:00,000 --> 00:00:01,500\nIt is a.\n")
    facts = json.loads(Path("new/texts/b.json").read_text())
    assert [facts[key] for key in ("file", "model", "backend", "task", "text")] == [
        "b.mp4", "whisper-tiny.en", "onnx", "transcribe", "It is b. The end.",
    ]  # fmt: skip


def test_some_formats_beside_the_recording(command: Command, scripted: Scripted) -> None:
    assert command("transcribe", "a.mp3", "-f", "srt, TXT", "--max-line-width", "5").code == 0
    assert sorted({*names()} - {"a.mp3", "b.mp4", "bad.wav", "damaged.mp3"}) == ["a.srt", "a.txt"]
    assert "It is\na.\n" in Path("a.srt").read_text()


def test_standard_input(command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"piped")))
    assert command("transcribe", "-", "-f", "txt").code == 0
    assert Path("stdin.txt").read_text() == "It is piped.\nThe end.\n"


def test_a_bad_recording_does_not_stop_the_rest(command: Command, scripted: Scripted) -> None:
    outcome = command("transcribe", "bad.wav", "nowhere.mp3", "a.mp3", "-f", "txt")
    assert outcome.code == 1
    assert "nest: error: bad.wav: There is no audio track in it.\n" in outcome.err
    assert outcome.err.endswith("nest: 1 of 3 recordings failed:\n  bad.wav\n")
    assert Path("a.txt").exists()
    assert not Path("bad.txt").exists()


def test_the_only_recording_that_fails(command: Command, scripted: Scripted) -> None:
    outcome = command("transcribe", "bad.wav")
    assert outcome.code == 1
    assert outcome.err.endswith("nest: error: There is no audio track in it.\n")
    scripted.options = {}
    outcome = command("transcribe", "nowhere.wav")
    assert (outcome.code, scripted.options) == (1, {})
    assert "There is no file 'nowhere.wav'" in outcome.err
    Path("folder").mkdir()
    outcome = command("transcribe", "folder")
    assert (outcome.code, scripted.options) == (1, {})
    assert "'folder' is a directory. Pass the path of one audio file." in outcome.err


def test_what_was_written_is_kept(command: Command, scripted: Scripted) -> None:
    Path("a.txt").write_text("mine")
    outcome = command("transcribe", "a.mp3", "b.mp4", "-f", "txt")
    assert outcome.code == 1
    assert "a.txt is there already: --skip-existing leaves it, --overwrite" in outcome.err
    assert (Path("a.txt").read_text(), Path("b.txt").exists()) == ("mine", True)
    Path("a.srt").touch()
    both = command("transcribe", "a.mp3", "-f", "txt,srt").err
    assert (
        "a.txt, a.srt are there already: --skip-existing leaves them, --overwrite writes them anew." in both
    )
    skipped = command("transcribe", "a.mp3", "-f", "txt,srt", "--skip-existing")
    assert (skipped.code, skipped.err) == (0, "nest: The recording is transcribed already.\n")
    assert len(scripted.calls) == 1
    outcome = command("transcribe", "a.mp3", "-f", "txt", "--overwrite")
    assert (outcome.code, Path("a.txt").read_text()) == (0, "It is a.\nThe end.\n")


def test_a_recording_is_not_overwritten_by_its_transcript(command: Command, scripted: Scripted) -> None:
    Path("talk.json").write_text("sound")
    Path("link.wav").symlink_to("link.json")
    Path("link.json").write_text("sound")
    for choice in ("--overwrite", "--skip-existing"):
        for given, output in (("talk.json", "talk.json"), ("link.wav", "link.json")):
            outcome = command("transcribe", given, "-f", "txt,json", choice)
            assert outcome.code == 1
            assert f"'{output}' is a recording, and a transcript would be written in its place" in outcome.err
            assert (Path(output).read_text(), scripted.options) == ("sound", {})
    outcome = command("transcribe", "talk.json", "a.mp3", "-f", "json", "--overwrite")
    assert outcome.code == 1
    assert outcome.err.endswith("nest: 1 of 2 recordings failed:\n  talk.json\n")
    assert [source for source, _ in scripted.calls] == ["a.mp3"]
    assert command("transcribe", "talk.json", "-f", "txt").code == 0


def test_only_what_is_missing_is_written(command: Command, scripted: Scripted) -> None:
    Path("a.txt").write_text("mine")
    assert command("transcribe", "a.mp3", "-f", "txt,srt", "--skip-existing").code == 0
    assert Path("a.txt").read_text() == "mine"
    assert "It is a." in Path("a.srt").read_text()


def test_a_killed_job_goes_on_where_it_was(command: Command, scripted: Scripted) -> None:
    names = [f"{number}.mp3" for number in range(9)]
    for name in (*names, "killed.mp3"):
        Path(name).touch()
    job = ["transcribe", *names[:6], "killed.mp3", *names[6:], "-f", "srt,json", "--skip-existing"]
    assert command(*job).code == 130
    assert len(list(Path().glob("*.json"))) == 6
    assert not list(Path().glob(".*"))
    Path("3.json").unlink()  # killed between its two files
    scripted.calls.clear()
    Path("killed.mp3").rename("whole.mp3")
    job[job.index("killed.mp3")] = "whole.mp3"
    outcome = command(*job)
    assert outcome.code == 0
    assert "nest: 5 of 10 recordings are transcribed already.\n" in outcome.err
    assert [source for source, _ in scripted.calls] == ["3.mp3", "whole.mp3", "6.mp3", "7.mp3", "8.mp3"]
    assert len(list(Path().glob("*.json"))) == len(list(Path().glob("*.srt"))) == 10
    scripted.options = {}
    assert command(*job).code == 0
    assert scripted.options == {}


def test_a_damaged_recording_is_said_to_be(command: Command, scripted: Scripted) -> None:
    outcome = command("transcribe", "damaged.mp3")
    assert outcome.code == 0
    assert "nest: note: damaged.mp3 is damaged: 3 s are used.\n" in outcome.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("a.mp3 sub/a.wav -f txt", "a.mp3 and sub/a.wav would all be written as 'a'"),
        ("a.mp3 -o b.mp4", "--output-dir is 'b.mp4', which is no directory."),
        ("a.mp3 -o b.mp4/texts/new", "--output-dir is 'b.mp4/texts/new', of which 'b.mp4' is no directory."),
        ("a.mp3 -o ~nobody-here/x", "--output-dir is '~nobody-here/x': there is no home of that name."),
        ("a.mp3 -o " + "x" * 300, "': File name too long."),
        (
            "a.mp3 --language French",
            "whisper-tiny.en: This model transcribes English only, and language 'fr' was asked for. "
            "Use a multilingual one, such as",
        ),
        (
            "a.mp3 --task translate",
            "whisper-tiny.en: This model transcribes English only, and task 'translate' was asked for. Use one that "
            "was trained to translate, such as whisper-small or whisper-large-v3. See",
        ),
        (
            "a.mp3 --model turbo --task translate",
            "This model has no task 'translate'; it has: transcribe. Use one that was trained to translate, such as",
        ),
        ("a.mp3 --model distil-large-v3 --task translate", "This model has no task 'translate'"),
        ("a.mp3 --model distil-large-v3 --language de", "'de' is none of this model's. Its codes are: en."),
        (
            "a.mp3 --model tiny --language Klingon",
            "The language 'Klingon' is none of this model's. Its codes",
        ),
        ("a.mp3 --model tiny --language Frensh", "is none of this model's. Did you mean 'French'"),
        ("a.mp3 --model tiny --language Cantonese", "The language 'yue' is none of this model's."),
        ("a.mp3 --model tiny --language=", "The language '' is none of this model's."),
        ("a.mp3 --model all-MiniLM-L6-v2", "'all-MiniLM-L6-v2' has no task 'transcription'"),
    ],
)
def test_what_no_recording_could_mend_is_wrong_usage(
    command: Command, scripted: Scripted, given: str, said: str
) -> None:
    outcome = command("transcribe", *given.split())
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.err.endswith(" See: nest transcribe --help\n")
    assert (scripted.calls, scripted.options) == ([], {})


def test_a_detected_language_is_said_once(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedStream, "language_probabilities", {"fr": 0.931, "yue": 0.04})
    outcome = command("transcribe", "a.mp3", "b.mp4", "--model", "turbo")
    assert outcome.code == 0
    assert outcome.err.count("nest: Detected language: French (93 %)\n") == 2
    assert "language" not in outcome.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "Nothing to transcribe: give a FILE"),
        ("a.mp3 -f doc", "There is no output format 'doc'; expected txt, srt, vtt, tsv, json or all."),
        ("a.mp3 --start late", "Argument --start: late is no time: expected seconds such as 90.5"),
        ("a.mp3 --start -1", "Argument --start: -1 is no time"),
        ("a.mp3 --start inf", "Argument --start: inf is no time"),
        ("a.mp3 --duration 1:2:3:4", "Argument --duration: 1:2:3:4 is no time"),
        ("a.mp3 --duration 0", "Argument --duration: 0 is no length of a recording; expected a time over 0."),
        ("a.mp3 --max-line-count 2", "--max-line-count means nothing without --max-line-width"),
        (
            "a.mp3 --max-line-width 0",
            "Argument --max-line-width: 0 is no integer from 1.",
        ),
        ("a.mp3 --fp16 False", "There is no option '--fp16'. Leave it out: --backend and --plan choose"),
        (
            "a.mp3 --compute_type=int8",
            "There is no option '--compute-type'. --dtype and --quantize choose",
        ),
        ("a.mp3 --device cuda", "There is no option '--device'. --backend chooses what computes. See:"),
        ("a.mp3 --verbose False", "There is no option '--verbose'. Leave it out: progress is shown on"),
        ("a.mp3 --batch-size 0", "Argument --batch-size: 0 is no integer from 1."),
        ("a.mp3 --backend tourch", "There is no backend 'tourch'; nest has torch, jax"),
        (
            "a.mp3 --temperature=-1e18",
            "Argument --temperature: -1e18 is no temperature; expected a number from 0",
        ),
        ("a.mp3 --temperature=-inf", "Argument --temperature: -inf is no temperature"),
        ("a.mp3 --temperature=nan", "Argument --temperature: nan is no temperature"),
        ("a.mp3 --temperature hot", "Argument --temperature: hot is no temperature"),
        ("a.mp3 --compression-ratio-threshold nan", "--compression-ratio-threshold: nan is no threshold"),
        ("a.mp3 --beam-size 0", "Argument --beam-size: 0 is no integer from 1."),
        ("a.mp3 --beam-size 101", "Argument --beam-size: 101 is no integer from 1 to 100."),
        ("a.mp3 --best-of 2.5", "Argument --best-of: 2.5 is no integer from 1."),
        (
            "a.mp3 --beam-size 5 --patience 0",
            "Argument --patience: 0 is no patience; expected a number over 0",
        ),
        ("a.mp3 --beam-size 5 --length_penalty 2", "Argument --length-penalty: 2 is no length penalty"),
        ("a.mp3 --patience 2", "--patience means nothing without --beam-size: give both."),
        ("a.mp3 --beam-size 1 --patience 0.5", "--beam-size times --patience must be over 0.5"),
        ("a.mp3 --length-penalty 1", "--length-penalty means nothing without --beam-size or --best-of"),
        ("a.mp3 --beam-size 5 --temperature 0.2", "--beam-size is for temperature 0"),
        ("a.mp3 --logprob-threshold nan", "--logprob-threshold: nan is no threshold"),
        ("a.mp3 --no-speech-threshold x", "--no-speech-threshold: x is no threshold"),
        (
            "a.mp3 --word-timestamps=maybe",
            "Argument --word-timestamps: 'maybe' switches nothing; expected one",
        ),
        ("a.mp3 --condition_on_previous_text=", "Argument --condition-on-previous-text: '' switches nothing"),
    ],
)
def test_wrong_usage(command: Command, scripted: Scripted, given: str, said: str) -> None:
    outcome = command("transcribe", *given.split())
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.err.endswith(" See: nest transcribe --help\n")
    assert scripted.options == {}


def test_skipping_and_overwriting_exclude_each_other(command: Command, scripted: Scripted) -> None:
    assert command("transcribe", "a.mp3", "--skip-existing", "--overwrite").code == 2


def test_a_terminal_has_times_and_progress(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nest.cli._transcribe_screen.sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("nest.cli._transcribe_screen.sys.stderr.isatty", lambda: True)
    outcome = command("transcribe", "a.mp3", "-f", "txt")
    assert outcome.out == "[0:00.0 - 0:01.5]  It is a.\n[0:01.5 - 0:04.0]  The end.\n"
    assert "0:02.0 of 0:04.0 heard" in outcome.err
    assert outcome.err.endswith("; written: a.txt\n")
    outcome = command("transcribe", "a.mp3", "b.mp4", "-f", "txt,srt", "-o", "texts")
    assert f"; written: {Path('texts/a.txt')}, {Path('texts/a.srt')}\n" in outcome.err
    assert outcome.err.endswith(f"; written: {Path('texts/b.txt')}, {Path('texts/b.srt')}\n")
    assert "written" not in command("transcribe", "a.mp3").err


def test_text_appears_as_it_is_decoded(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the next segment is asked for."""
    shown: list[str] = []
    original = ScriptedStream.__next__

    def asked(self: ScriptedStream) -> Segment:
        shown.append(sys.stdout.getvalue())  # type: ignore[attr-defined]
        return original(self)

    monkeypatch.setattr(ScriptedStream, "__next__", asked)
    assert command("transcribe", "a.mp3").code == 0
    assert shown == ["", "It is a.\n", "It is a.\nThe end.\n"]


@pytest.mark.weights
def test_a_video_becomes_subtitles(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nest.tasks import audio

    from ..tasks.recordings import contained

    samples = audio.load(ROOT / "assets" / "audio" / "librivox_0930.wav", target=48000)
    monkeypatch.chdir(tmp_path)
    Path("film.mp4").write_bytes(contained(samples, 48000, "mp4", "aac", picture=True))
    outcome = command("transcribe", "film.mp4", "-f", "srt", "--word-timestamps", "--max-line-width", "24")
    assert outcome.code == 0, outcome.err
    number, times, *lines = Path("film.srt").read_text().splitlines()
    assert (number, lines) == ("1", ["He might even have been", "made amiable himself."])
    assert times.startswith("00:00:00,000 --> 00:00:02,8")


@pytest.mark.weights
def test_a_job_of_ten_recordings_is_killed_and_gone_on_with(tmp_path: Path) -> None:
    """By the command itself, and a signal that nothing can answer."""
    recording = (ROOT / "assets" / "audio" / "librivox_0930.wav").read_bytes()
    given = [f"{number}.wav" for number in range(10)]
    for name in given:
        (tmp_path / name).write_bytes(recording)
    job = [sys.executable, "-m", "nest", "transcribe", *given, "-o", "texts", "--skip-existing"]
    texts, environment = tmp_path / "texts", os.environ | {"PYTHONPATH": str(ROOT)}

    def written() -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in texts.glob("[!.]*")}

    process = subprocess.Popen(job, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not (texts / "3.txt").exists():  # its other formats come after it
        assert process.poll() is None
        assert time.monotonic() < deadline, "three recordings were not transcribed"
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = written()
    assert {f"{number}.{end}" for number in range(3) for end in ("txt", "srt", "vtt", "tsv", "json")} < set(
        before
    )
    assert "9.txt" not in before
    (tmp_path / "8.wav").write_bytes(b"no recording" * 100)

    done = subprocess.run(
        job, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1
    assert done.stderr.endswith("recordings failed:\n  8.wav\n")
    assert "of 10 recordings are transcribed already.\n" in done.stderr
    after = written()
    assert len(after) == 9 * 5
    assert before.items() <= after.items()
    for number in (0, 3, 9):
        assert after[f"{number}.txt"] == "He might even have been made amiable himself.\n"
        assert json.loads(after[f"{number}.json"])["file"] == f"{number}.wav"
