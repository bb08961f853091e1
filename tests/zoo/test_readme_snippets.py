"""The snippets of the entries' READMEs run: on the real weights where they can be had, else on small random ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nest.errors import InputError
from nest.registry import find
from nest.tasks._settings import generation_rules
from nest.tasks.rules import prompt_ids

from .small import byte_level_tokenizer, python_of, run, small_entry

ROOT = Path(__file__).parents[2]
OTHERS = {
    "whisper-base": {"D": 24},
    "whisper-base.en": {"D": 24},
    "whisper-small": {"D": 24},
    "whisper-small.en": {"D": 24},
    "whisper-medium": {"D": 32},
    "whisper-medium.en": {"D": 32},
    "whisper-large-v2": {"D": 40},
    "whisper-large-v3": {"D": 40},
    "whisper-large-v3-turbo": {"D": 40},
    "distil-large-v3": {"D": 40},
}
"""Sizes that the heads of an entry divide."""
SMALL = {"D": 24, "Inner": 40, "EncoderLayers": 1}


@pytest.fixture
def _beside_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(
        ROOT / "assets" / "audio" / "jfk.wav", folder / "talk.mp3"
    )  # the content decides, not the name
    monkeypatch.chdir(folder)


@pytest.mark.weights
@pytest.mark.usefixtures("_beside_a_recording")
def test_the_snippets_of_tiny_en(capsys: pytest.CaptureFixture[str]) -> None:
    sources = python_of("whisper-tiny.en")
    names = run(sources)
    text = "And so my fellow Americans ask not what your country can do for you, ask what you can do for your country."
    assert capsys.readouterr().out == f"{text}\n0.0 to 11.0 s: {text}\n"
    assert tuple(names["states"].shape) == (1, 1500, 384)
    assert names["logits"].shape == (1, 51864)
    spoken = names["tokens"][2:]
    assert names["transcribe"].tokenizer.decode(spoken).split()[:4] == ["And", "so", "my", "fellow"]


@pytest.mark.usefixtures("_beside_a_recording")
def test_the_snippets_of_tiny_on_small_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of("whisper-tiny")
    files = {"tokenizer.json": byte_level_tokenizer(50257)}
    small_entry("whisper-tiny", SMALL, files, tmp_path, monkeypatch)
    names = run(sources)
    language, transcribed, translated = capsys.readouterr().out.splitlines()
    assert language in names["languages"]
    assert transcribed
    assert translated
    assert names["heard"] == language
    assert names["logits"].shape == (1, 51865)
    assert names["model"].state_dict()["token_embedding"].shape == (51865, SMALL["D"])


@pytest.mark.usefixtures("_beside_a_recording")
@pytest.mark.parametrize("name", OTHERS)
def test_the_snippets_of_the_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of(name)
    sizes = {**OTHERS[name], "Inner": 40, "EncoderLayers": 1, "DecoderLayers": 1}
    heads = {} if name == "distil-large-v3" else {"alignment_heads": [[0, 1]]}
    files = {"tokenizer.json": byte_level_tokenizer(50257)}
    small_entry(name, sizes, files, tmp_path, monkeypatch, facts=heads)
    names = run(sources)
    assert capsys.readouterr().out.strip()
    if "states" in names:
        assert tuple(names["states"].shape) == (1, 1500, sizes["D"])
    if "logits" in names:
        assert names["logits"].shape == (1, 51864)


def test_what_turbo_and_distil_cannot_do_is_refused() -> None:
    """They were not trained to translate, nor distil to hear other languages."""
    for name, languages in (("turbo", 100), ("distil-large-v3", 1)):
        rules = generation_rules(find(name))
        assert len(rules.languages) == languages
        with pytest.raises(InputError, match=r"translate"):
            prompt_ids(rules, "en", "translate")
    with pytest.raises(InputError, match=r"de"):
        prompt_ids(generation_rules(find("distil-large-v3")), "de", "transcribe")
