from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nest.errors import InputError, ManifestError, UnknownEntryError
from nest.registry import find
from nest.tasks import Transcriber, pipeline
from nest.tasks.tokens import Tokenizer


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer) -> list[tuple[str, dict[str, Any]]]:
    """What was asked of `nest.load` and how, and then of `fetch`, both replaced."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def fetched(names: list[str], options: dict[str, Any]) -> SimpleNamespace:
        calls.append((names[0], options))
        return SimpleNamespace(files=dict.fromkeys(names, tokenizer.path))

    def load(name: str, **options: Any) -> SimpleNamespace:
        calls.append((name, options))
        return SimpleNamespace(entry=find(name))

    def chosen_backend(*, extras: tuple[str, ...], **options: Any) -> str:
        return f"the first for {extras[0]} and {sorted(options)}"

    loading = ModuleType("nest.loading")
    loading.load = load  # type: ignore[attr-defined]
    loading.chosen_backend = chosen_backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nest.loading", loading)
    monkeypatch.setattr(
        "nest.weights.fetch",
        lambda entry, names, **options: fetched(names, options),
    )
    return calls


def test_a_name_is_loaded_on_the_first_backend(loads: list[tuple[str, dict[str, Any]]]) -> None:
    transcriber = pipeline("whisper-tiny.en")
    assert isinstance(transcriber, Transcriber)
    assert loads == [("whisper-tiny.en", {"backend": "the first for audio and []"}), ("tokenizer.json", {})]
    assert transcriber.rules.end == 50256
    assert transcriber.mel.bins == 80


def test_options_go_to_load(loads: list[tuple[str, dict[str, Any]]]) -> None:
    pipeline("whisper-tiny.en", backend="onnx", weights=None, seed=3)
    assert loads[0] == ("whisper-tiny.en", {"backend": "onnx", "weights": None, "seed": 3})


def test_options_about_fetching_hold_for_the_tokenizer(loads: list[tuple[str, dict[str, Any]]]) -> None:
    pipeline("whisper-tiny.en", seed=3, local_files_only=True, cache_dir="here")
    assert loads[1] == ("tokenizer.json", {"local_files_only": True, "cache_dir": "here"})


def test_a_plan_is_of_the_pipeline(loads: list[tuple[str, dict[str, Any]]]) -> None:
    assert pipeline("whisper-tiny.en", plan="fast").plan == "fast"
    assert loads[0][1] == {"backend": "the first for audio and []"}
    assert pipeline(SimpleNamespace(entry=find("whisper-tiny")), plan="fast").plan == "fast"


def test_a_directory_is_loaded(loads: list[tuple[str, dict[str, Any]]]) -> None:
    directory = find("whisper-tiny.en").directory
    pipeline(directory)
    assert loads[0] == (str(directory), {"backend": "the first for audio and []"})


def test_what_is_asked_for_chooses_the_backend(loads: list[tuple[str, dict[str, Any]]]) -> None:
    pipeline("whisper-tiny.en", device="cuda", seed=3)
    assert loads[0][1] == {"backend": "the first for audio and ['device']", "device": "cuda", "seed": 3}


def test_a_loaded_model_is_used_as_it_is(loads: list[tuple[str, dict[str, Any]]]) -> None:
    model = SimpleNamespace(entry=find("whisper-tiny"))
    assert pipeline(model).model is model
    assert loads == [("tokenizer.json", {})]


@pytest.mark.parametrize("options", [{"backend": "onnx"}, {"seed": 1}])
def test_options_for_a_loaded_model_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(
        InputError, match=f"is loaded already, and {next(iter(options))} can only be chosen while"
    ):
        pipeline(SimpleNamespace(entry=find("whisper-tiny")), **options)


@pytest.mark.parametrize("model", [SimpleNamespace(entry=None), 3])
def test_a_model_without_an_entry_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match=rf"a {type(model).__name__} without an entry came"):
        pipeline(model)


def test_an_unknown_name_is_refused(loads: list[tuple[str, dict[str, Any]]]) -> None:
    with pytest.raises(UnknownEntryError):
        pipeline("whisper-tiny.em")


@pytest.mark.parametrize(
    ("task", "found"),
    [(None, r"it has no \[task\] table"), (SimpleNamespace(kind="x", also=[]), "task.kind is 'x'")],
)
def test_a_task_without_a_pipeline_is_refused_before_loading(
    loads: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, task: Any, found: str
) -> None:
    entry = find("whisper-tiny.en")
    monkeypatch.setattr(entry, "manifest", entry.manifest.model_copy(update={"task": task}))
    monkeypatch.setattr("nest.tasks._pipeline.find", lambda name: entry)
    with pytest.raises(ManifestError, match=rf"nest\.toml: {found}, so .* expected one of: transcription, "):
        pipeline("whisper-tiny.en")
    assert loads == []
