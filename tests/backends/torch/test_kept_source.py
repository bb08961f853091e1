"""Generated source is printed once for what it is made of, and again where any of that has changed or is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import nest
from nest.backends.torch import kept_source as kept
from nest.backends.torch.kept_source import SourceText, kept_source
from nest.ir.plan import plan
from nest.loading import program_of
from nest.registry import find

SIZES: dict[str, Any] = {
    "Mels": 5, "Frames": 32, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 1, "DecoderLayers": 1, "Vocab": 97,
    "MaxTokens": 24,
}  # fmt: skip


class Printer:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> SourceText:
        self.count += 1
        return SourceText(f"text {self.count}", "Model", {"T": "torch.float32", "D": "12"})


def program(**changes: Any) -> Any:
    return program_of(find("whisper-tiny"), **{**SIZES, **changes})


def test_what_was_printed_is_found_again(tmp_path: Path) -> None:
    made = Printer()
    first = kept_source(plan(program()), made, folder=tmp_path)
    assert kept_source(plan(program()), made, folder=tmp_path) == first
    assert made.count == 1


def test_another_program_or_plan_is_printed(tmp_path: Path) -> None:
    made = Printer()
    for of in (
        plan(program()),
        plan(program(D=24)),
        plan(program(), "fast"),
        plan(program(), "fast", changes=["fuse"]),
    ):
        kept_source(of, made, folder=tmp_path)
    assert made.count == 4


def test_a_changed_definition_or_printer_prints_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, of = Printer(), plan(program())
    definition = tmp_path / "model.py"
    definition.write_text("a = 1")
    monkeypatch.setattr(kept, "_files", lambda program: {str(definition)})
    for text in ("a = 1", "a = 1  # said otherwise"):
        definition.write_text(text)
        kept_source(of, made, folder=tmp_path / "kept")
    assert made.count == 2
    monkeypatch.setattr(kept, "_printer", lambda: "another")
    kept_source(of, made, folder=tmp_path / "kept")
    assert made.count == 3


def test_the_files_are_those_of_the_definition() -> None:
    names = {Path(path).name for path in kept._files(program())}
    assert {"model.py", "linear.py", "norm.py"} <= names


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"sha256": "00"}\n{}', b"\xff\xfe"])
def test_what_is_damaged_is_printed_anew(tmp_path: Path, damage: bytes) -> None:
    made, of = Printer(), plan(program())
    kept_source(of, made, folder=tmp_path)
    (path,) = tmp_path.glob("*.source")
    path.write_bytes(damage)
    kept_source(of, made, folder=tmp_path)
    assert made.count == 2
    assert kept_source(of, made, folder=tmp_path).text == "text 2"


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    made = Printer()
    for _ in range(2):
        kept_source(plan(program()), made, folder=file)
    assert made.count == 2


def test_much_is_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_KEPT_BYTES", 1)
    for size in (12, 24):
        kept_source(plan(program(D=size)), Printer(), folder=tmp_path)
    assert not list(tmp_path.glob("*.source"))


def test_a_model_from_kept_source_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path))
    first, second = (
        nest.load("whisper-tiny", backend="torch", weights=None, seed=2, **SIZES) for _ in range(2)
    )
    assert first.source == second.source
    assert type(first).__name__ == type(second).__name__
