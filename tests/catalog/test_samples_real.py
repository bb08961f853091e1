"""The committed outputs of samples, measured again with real weights; and what writes them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.catalog.sampling import measure, references, write
from nest.cli import main
from nest.errors import InputError
from nest.registry import Sample, find

MEASURED = ("whisper-tiny.en", "all-MiniLM-L6-v2", "smollm2-135m-instruct")


def near(got: Any, want: Any, place: str = "") -> None:
    """The same, but for what another backend or processor rounds differently."""
    if isinstance(want, dict):
        assert got.keys() == want.keys(), place
        for name in want:
            near(got[name], want[name], f"{place}.{name}")
    elif isinstance(want, list):
        assert len(got) == len(want), place
        for index, part in enumerate(want):
            near(got[index], part, f"{place}[{index}]")
    elif isinstance(want, float):
        loose = place.endswith((".start", ".end"))
        np.testing.assert_allclose(got, want, atol=0.021 if loose else 5e-3, err_msg=place)
    else:
        assert got == want, place


@pytest.mark.weights
@pytest.mark.parametrize("name", MEASURED)
def test_the_committed_samples_are_what_the_weights_give(name: str) -> None:
    entry = find(name)
    for got, want in zip(measure(entry, backend="onnx"), entry.samples, strict=True):
        theirs = {"computed", *(field for field in Sample.model_fields if field.startswith("reference_"))}
        near(got.model_dump(exclude=theirs), want.model_dump(exclude=theirs))
        assert got.computed is not None
        assert want.computed is not None
        assert got.computed.weights == want.computed.weights


@pytest.mark.weights
@pytest.mark.reference
@pytest.mark.parametrize("name", MEASURED)
def test_the_committed_references_are_what_the_library_gives(name: str) -> None:
    entry = find(name)
    give = references(entry)
    for sample in entry.samples:
        for field, value in give(sample).items():
            near(value, sample.model_dump()[field], field)
        assert sample.text == sample.reference_text


@pytest.mark.weights
def test_a_command_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "all-MiniLM-L6-v2"
    shutil.copytree(find("all-MiniLM-L6-v2").directory, folder)
    file = folder / "samples.json"
    file.write_text('{"kind": "sentence-embedding", "texts": ["A cat.", "A kitten."], "note": "Two texts."}')
    entry = find(str(folder))
    monkeypatch.setattr("nest.registry.find", lambda name: entry)
    monkeypatch.setattr("nest.catalog.sampling._ours.pipeline", _trusting)
    assert main(["catalog", "sample", "x", "--backend", "onnx", "--no-reference"]) == 0
    assert capsys.readouterr().out == f"{file}: 1 measured.\n"
    (made,) = find(str(folder)).samples
    assert made.matrix is not None
    assert 0.5 < made.matrix[0][1] < 1
    assert made.note == "Two texts."
    assert made.computed is not None
    assert (made.computed.backend, made.computed.reference) == ("onnx", None)
    assert [f.name for f in folder.iterdir() if f.name.startswith(".")] == []


def _trusting(name: str, **options: Any) -> Any:
    from nest.tasks import pipeline

    return pipeline(name, trust_source=True, **options)


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"The reference library's side of 'image-embedding' is not written yet"
    ):
        references(find("dinov2-base"))
    folder = tmp_path / "whisper-tiny"
    shutil.copytree(find("whisper-tiny").directory, folder)
    (folder / "samples.json").unlink()
    with pytest.raises(InputError, match="'whisper-tiny' has no sample: write an input into"):
        measure(find(str(folder)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["catalog", "sample"], "needs the NAME of an entry"), (["catalog", "build", "x"], "takes no NAME")],
)
def test_names_are_for_samples(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_writing_keeps_what_stands_there(tmp_path: Path) -> None:
    """The committed files are in the form that the tool writes, so that measuring again changes numbers alone."""
    for name in MEASURED:
        entry = find(name)
        folder = tmp_path / name
        shutil.copytree(entry.directory, folder)
        write(find(str(folder)), entry.samples)
        assert (folder / "samples.json").read_text() == (entry.directory / "samples.json").read_text()
