"""The runner of an exported speech model: a program of its own, which needs no nest."""

from __future__ import annotations

import importlib.util
import json
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.tasks import audio
from nest.tasks.mel import MelSettings, log_mel, mel_filters

from .conftest import ROOT

CLIP = ROOT / "assets" / "audio" / "librivox_0870.wav"
TEXT = (
    "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for "
    "them."
)


@pytest.fixture(scope="module")
def runner() -> Any:
    """The runner as a module."""
    spec = importlib.util.spec_from_file_location(
        "run_speech", ROOT / "nest" / "export" / "onnx" / "_run_speech.py"
    )
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def transcriber(runner: Any) -> Any:
    """Its transcriber without any files."""
    made = runner.Transcriber.__new__(runner.Transcriber)
    made.filters = mel_filters(MelSettings())
    made.mel = {
        "rate": 16000, "n_fft": 400, "hop": 160, "window_seconds": 30.0, "floor": 1e-10, "range": 8.0,
    }  # fmt: skip
    made.ids = {
        "languages": {"en": 7, "de": 8}, "start_of_transcript": 5, "transcribe": 10, "translate": 11,
        "no_timestamps": 12, "prompt": [5, 7, 10, 12],
    }  # fmt: skip
    return made


@pytest.mark.weights
@pytest.mark.parametrize("opset", [17, 24])
def test_a_recording_is_read_right_without_nest(
    opset: int, tmp_path: Path, stranger: Callable[..., str]
) -> None:
    model = nest.load("whisper-tiny.en", backend="reference")
    files = nest.save(model, tmp_path / "out", "onnx", opset=opset)
    assert {"run.py", "tokenizer.json", "mel_filters.npy", "io.json"} <= {p.name for p in files}
    assert stranger(tmp_path / "out" / "run.py", str(CLIP)).strip() == TEXT
    assert stranger(tmp_path / "out" / "run.py", str(CLIP), "--stepwise", "--threads", "1").strip() == TEXT


@pytest.mark.weights
def test_io_json_has_what_the_publisher_says_of_decoding(tmp_path: Path) -> None:
    nest.save(nest.load("whisper-tiny.en", backend="reference"), tmp_path, "onnx")
    io = json.loads((tmp_path / "io.json").read_text())
    assert (io["task"], io["model"]["repo"]) == ("transcription", "openai/whisper-tiny.en")
    assert (io["generation"]["prompt"], io["generation"]["end_of_text"]) == ([50257, 50362], 50256)
    assert len(io["generation"]["suppress"]) == 90
    np.testing.assert_array_equal(np.load(tmp_path / io["preprocess"]["filters"]), mel_filters(MelSettings()))


@pytest.mark.parametrize("seconds", [0.05, 7.0, 30.0])
def test_its_spectrogram_is_nest_s(seconds: float, transcriber: Any) -> None:
    samples = np.random.default_rng(0).standard_normal(round(16000 * seconds)).astype(np.float32) * 0.1
    np.testing.assert_array_equal(transcriber.log_mel(samples), log_mel(samples))


def test_a_wav_file_is_read_as_nest_reads_it(runner: Any) -> None:
    np.testing.assert_array_equal(runner.read_wav(str(CLIP), 16000), audio.load(CLIP))


def test_channels_are_averaged(runner: Any, tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "two.wav"), "wb") as file:
        file.setparams((2, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.array([[0, 16384], [-32768, -32768]], "<i2").tobytes())
    np.testing.assert_array_equal(runner.read_wav(str(tmp_path / "two.wav"), 16000), np.float32([0.25, -1.0]))


def test_another_rate_is_refused_with_the_command_that_converts(runner: Any) -> None:
    with pytest.raises(
        SystemExit, match=r"expected 16-bit samples at 8000 Hz; found 16-bit ones at 16000 Hz\. .*ffmpeg -i"
    ):
        runner.read_wav(str(CLIP), 8000)


def test_recordings_are_cut_into_windows(transcriber: Any) -> None:
    lengths = [len(w) for w in transcriber.windows(np.zeros(480000 + 1000, np.float32))]
    assert lengths == [480000]
    assert [len(w) for w in transcriber.windows(np.zeros(480000 + 1600, np.float32))] == [480000, 1600]
    assert [len(w) for w in transcriber.windows(np.zeros(10, np.float32))] == [10]


def test_the_prompt_names_language_and_task(transcriber: Any) -> None:
    assert transcriber.prompt("de", "translate") == [5, 8, 11, 12]
    with pytest.raises(SystemExit, match="The languages are en, de; 'fr' was asked for"):
        transcriber.prompt("fr", "transcribe")
    transcriber.ids["languages"] = {}
    assert transcriber.prompt(None, "transcribe") == [5, 7, 10, 12]
    with pytest.raises(SystemExit, match="This model transcribes English only"):
        transcriber.prompt("en", "translate")


def test_the_language_is_the_most_likely_of_the_model_s(transcriber: Any) -> None:
    calls: list[str] = []

    def graph(name: str) -> Callable[..., Any]:
        def run(states: Any, **inputs: Any) -> Any:
            calls.append(name)
            logits = np.zeros((1, 20))
            logits[0, [3, 8]] = 9, 2  # 3 is no language
            return (logits,)

        return run

    transcriber.graph, transcriber.empty = graph, dict
    assert transcriber.spoken(np.zeros((1, 80, 3000))) == "de"
    assert calls == ["listen", "prefill"]
