"""A matrix kept beside its entry: what is put together, and what never is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from nest.checking.measured import Current
from nest.errors import CallError
from nest.loading import program_of
from nest.registry import Entry, find, zoo_directory
from nest.registry.parity import read_parity
from nest.verify import Row, save

CONDITIONS = {"date": "2026-11-30", "processor": "a processor"}


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    folder = tmp_path / "resnet-18"
    ignored = shutil.ignore_patterns("__pycache__", "parity.json", "bench.json")
    shutil.copytree(zoo_directory() / "resnet-18", folder, ignore=ignored)
    return find(folder)


def row(batch: int, difference: float = 1e-6, **facts: Any) -> Row:
    given: dict[str, Any] = {
        "entry": "resnet-18", "configuration": "tiny", "weights": "random", "input": "drawn", "output": "forward",
        "backend": "torch", "plan": "exact", "dtype": "f32", "limit": "2.0e-05 of the largest",
    }  # fmt: skip
    return Row(**{**given, "batch": batch, "difference": difference, "choices": 2, **facts})


def tiny(entry: Entry) -> Any:
    return program_of(entry, trust_source=True, **entry.manifest.tiny)


def test_batches_are_put_together_at_their_worst(entry: Entry) -> None:
    save(entry, tiny(entry), [row(1, 1e-6), row(3, 2.3456e-6)], CONDITIONS)
    (run,) = read_parity(entry.directory, entry.name)
    (kept,) = run.rows
    assert (kept.batches, kept.difference, kept.choices) == ([1, 3], 2.35e-6, 4)
    assert run.conditions == CONDITIONS


def test_a_failed_row_stands_alone(entry: Entry) -> None:
    failed = {"status": "failed", "reason": "over 2.0e-05 of the largest"}
    rows = [row(1), row(3, 0.5, **failed), row(4, 0.7, **failed)]
    save(entry, tiny(entry), rows, CONDITIONS)
    (run,) = read_parity(entry.directory, entry.name)
    assert [(r.batches, r.difference, r.status) for r in run.rows] == [
        ([1], 1e-6, "ok"),
        ([3], 0.5, "failed"),
        ([4], 0.7, "failed"),
    ]


def test_what_is_not_finite_has_no_number(entry: Entry) -> None:
    wrong = row(1, float("inf"), status="failed", reason="NaN or infinite")
    save(entry, tiny(entry), [wrong], CONDITIONS)
    (run,) = read_parity(entry.directory, entry.name)
    assert (run.rows[0].difference, run.rows[0].reason) == (None, "NaN or infinite")


def test_another_configuration_is_refused(entry: Entry) -> None:
    with pytest.raises(CallError, match="this is 'Layers=2'"):
        save(entry, tiny(entry), [row(1, configuration="Layers=2")], CONDITIONS)
    assert read_parity(entry.directory, entry.name) == []


def test_numbers_of_another_definition_are_not_current(entry: Entry) -> None:
    save(entry, tiny(entry), [row(1)], CONDITIONS)
    (run,) = read_parity(entry.directory, entry.name)
    assert Current(entry, trust_source=True).parity(run)
    source = entry.directory / "model.py"
    text = source.read_text("utf-8")
    assert "relu(" in text
    source.write_text(text.replace("relu(", "gelu(").replace("import relu", "import gelu"), "utf-8")
    source.write_text(source.read_text("utf-8").replace("    relu,", "    gelu,"), "utf-8")
    assert not Current(find(entry.directory), trust_source=True).parity(run)


def test_real_weights_of_another_commit_are_not_current(entry: Entry) -> None:
    real = row(1, configuration="full", weights="real")
    save(entry, program_of(entry, trust_source=True), [real], CONDITIONS)
    (run,) = read_parity(entry.directory, entry.name)
    assert Current(entry, trust_source=True).parity(run)
    manifest = entry.directory / "nest.toml"
    revision = entry.manifest.weights.revision if entry.manifest.weights else ""
    manifest.write_text(manifest.read_text("utf-8").replace(revision, "f" * 40), "utf-8")
    assert not Current(find(entry.directory), trust_source=True).parity(run)
