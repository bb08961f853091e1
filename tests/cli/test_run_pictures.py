"""`nest run` of pictures: classes, vectors, and texts that go with them, with scripted tasks."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError
from nest.tasks.classify_image import Label

from .conftest import ROOT, Command


class Scripted:
    """Stands in for `nest.pipeline`, and for what it makes."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, dict[str, Any]]] = []
        self.kind: str | None = None

    def pipeline(self, name: str, *, task: str | None, **options: Any) -> Scripted:
        self.name, self.kind = name, task
        return self

    def __call__(self, source: Any, texts: Any = None, **options: Any) -> Any:
        self.calls.append((source, texts, options))
        if source == "bad.jpg":
            raise InputError("The picture in 'bad.jpg' is damaged.")
        if texts is not None:
            return np.linspace(0.25, 0.75, len(texts))
        if self.name.startswith("dino") or self.kind == "image-embedding":
            return np.array([1, 0.5, -2], np.float32)
        return [Label("espresso", 0.9512345, 967), Label("cup", 0.04, 968)][: options["top"]]


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted()
    monkeypatch.chdir(tmp_path)
    for name in ("a.jpg", "b.jpg"):
        shutil.copy(ROOT / "assets" / "images" / "coffee.jpg", name)
    Path("bad.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    monkeypatch.setattr("nest.cli._run.pipeline", script.pipeline)
    monkeypatch.setattr("nest.cli._run.announce_fetch", lambda entry: None)
    monkeypatch.setattr("nest.cli._run.chosen_backend", lambda *, extras, **_: f"the first for {extras[0]}")
    return script


def test_the_classes_of_a_picture(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "resnet-18", "a.jpg")
    assert (outcome.code, outcome.out) == (0, "0.951  espresso\n0.040  cup\n")
    assert outcome.err == "Running on the first for vision, plan exact; --backend and --plan choose others.\n"
    assert scripted.calls == [("a.jpg", None, {"top": 5})]


def test_pictures_as_json_and_one_that_is_bad(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "resnet-18", "--top", "1", "--json", "a.jpg", "bad.jpg", "b.jpg")
    assert outcome.code == 1
    assert "nest: error: The picture in 'bad.jpg' is damaged." in outcome.err
    told = [json.loads(line) for line in outcome.out.splitlines()]
    assert [facts["file"] for facts in told] == ["a.jpg", "b.jpg"]
    assert told[0]["labels"] == [{"label": "espresso", "score": 0.951234, "index": 967}]


def test_the_only_picture_is_looked_at_before_anything_is_fetched(
    command: Command, scripted: Scripted
) -> None:
    for name, message in (("none.jpg", "There is no file 'none.jpg'"), ("bad.jpg", "'bad.jpg' (4 bytes)")):
        outcome = command("run", "resnet-18", name)
        assert outcome.code == 1
        assert message in outcome.err
    assert scripted.calls == []


def test_the_sample_of_an_entry(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "vit-base-patch16-224")
    assert outcome.code == 0
    assert outcome.out.startswith("coffee.jpg  espresso; cup\nexpected    Not measured")
    outcome = command("run", "clip-vit-base-patch32")
    assert outcome.out.startswith("coffee.jpg  0.750 a photo of two cats; 0.500 ")


def test_a_vector_of_standard_input(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Input:
        buffer = io.BytesIO(Path("a.jpg").read_bytes())

    monkeypatch.setattr("sys.stdin", Input)
    outcome = command("run", "dinov2-base", "-")
    assert (outcome.code, outcome.out) == (0, "1 0.5 -2\n")
    assert scripted.calls[0][0].read(2) == b"\xff\xd8"
    outcome = command("run", "clip-vit-base-patch32", "--kind", "image-embedding", "--json", "a.jpg")
    assert json.loads(outcome.out)["embedding"] == [1, 0.5, -2]


def test_texts_the_likeliest_first(command: Command, scripted: Scripted) -> None:
    given = ("--text", "a cat", "--text", "a dog", "a.jpg")
    outcome = command("run", "siglip-base-patch16-224", *given)
    assert (outcome.code, outcome.out) == (0, "0.750  a dog\n0.250  a cat\n")
    outcome = command("run", "siglip-base-patch16-224", *given, "--json")
    assert json.loads(outcome.out)["texts"][0] == {"text": "a dog", "score": 0.75}


def test_options_that_are_missing_or_of_another_task(command: Command, scripted: Scripted) -> None:
    outcome = command("run", "clip-vit-base-patch32", "a.jpg")
    assert outcome.code == 1
    assert "give each text with --text, as in --text 'a photo of a cat'" in " ".join(outcome.err.split())
    for arguments, message in (
        (("resnet-18", "--text", "a cat", "a.jpg"), "--text is for image-text-matching"),
        (
            ("clip-vit-base-patch32", "--text", "x", "--top", "2", "a.jpg"),
            "--top is for fill-mask and image-class",
        ),
    ):
        outcome = command("run", *arguments)
        assert outcome.code == 2
        assert message in outcome.err
