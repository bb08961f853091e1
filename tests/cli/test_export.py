"""`nest export` and `nest eject`, as a person types them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import nest

from .conftest import Command


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Weights of whisper-tiny's sizes, as a person may have them: random ones, under the publisher's names."""
    nest.save(nest.load("whisper-tiny", backend="reference", weights=None), tmp_path / "mine")
    return tmp_path / "mine" / "model.safetensors"


def test_a_checkpoint_is_written_under_definition_paths(
    command: Command, checkpoint: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    made = command(
        "export",
        "whisper-tiny",
        str(out),
        "--format",
        "safetensors",
        "--weights",
        str(checkpoint),
        "--offline",
    )
    assert (made.code, made.err) == (0, "")
    assert made.out.split() == [str(out / "model.safetensors"), "151", "MB"]


def test_what_was_written_is_said_as_data(command: Command, checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = command(
        "export",
        "whisper-tiny",
        str(out),
        "--format",
        "hf",
        "--dtype",
        "f16",
        "--weights",
        str(checkpoint),
        "--json",
    )
    files: list[dict[str, Any]] = json.loads(made.out)
    assert {Path(f["file"]).name for f in files} >= {"model.safetensors", "config.json"}
    assert all(Path(f["file"]).stat().st_size == f["size"] for f in files)
    assert json.loads((out / "config.json").read_text())["torch_dtype"] == "float16"


@pytest.mark.weights
def test_an_onnx_folder_says_how_it_is_run(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = command("export", "whisper-tiny.en", str(out), "--format", "onnx", "--opset", "17", "--offline")
    assert (made.code, made.err) == (0, "")
    assert made.out.endswith(f"\npython {out / 'run.py'} talk.wav\n")
    assert json.loads((out / "io.json").read_text())["opset"] == 17


def test_an_unknown_format_is_wrong_usage(command: Command, tmp_path: Path) -> None:
    made = command("export", "whisper-tiny", str(tmp_path), "--format", "onx")
    assert made.code == 2
    assert "There is no value for --format 'onx'." in made.err


def test_a_format_is_needed(command: Command, tmp_path: Path) -> None:
    made = command("export", "whisper-tiny", str(tmp_path))
    assert made.code == 2
    assert "--format" in made.err


def test_a_stranger_s_definition_is_not_run(command: Command, stranger: Path, tmp_path: Path) -> None:
    for arguments in (
        ("export", str(stranger), str(tmp_path / "out"), "--format", "hf", "--offline"),
        ("eject", str(stranger)),
    ):
        made = command(*arguments)
        assert made.code == 1
        assert "is not of the installed zoo, and loading it would run a Python file" in made.err
    assert not (tmp_path / "out").exists()


def test_source_goes_to_standard_output(command: Command) -> None:
    made = command("eject", "whisper-tiny.en", "--backend", "nnx", "-D", "D=192", "-D", "Heads=3")
    assert (made.code, made.err) == (0, "")
    assert "    D: int = 192\n" in made.out
    ast.parse(made.out)


def test_source_goes_to_a_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "whisper.py"
    made = command("eject", "whisper-tiny.en", "-o", str(path))
    assert made.code == 0
    lines = len(path.read_text().splitlines())
    assert made.out == f"{path}: {lines} lines. Try: python {path} model.safetensors\n"


def test_a_file_that_cannot_be_written_is_named(command: Command, tmp_path: Path) -> None:
    made = command("eject", "whisper-tiny.en", "-o", str(tmp_path / "no" / "such" / "x.py"))
    assert made.code == 1
    assert "x.py cannot be written: No such file or directory." in made.err
