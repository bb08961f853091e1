"""The section Numbers and the figures of the index: what failed or is not measured is said, never a plain number."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nest.catalog.facts import Facts
from nest.catalog.measured import summary
from nest.catalog.readme import read
from nest.catalog.sections.numbers import section
from nest.catalog.speed_chart import speed_chart
from nest.ir.printer import digest
from nest.loading import program_of
from nest.registry import cards, find, zoo_directory
from nest.registry.bench import BenchRun, write_bench
from nest.registry.evaluations import EvalRun, write_eval
from nest.registry.parity import ParityRun, write_parity

NAME = "resnet-18"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of an entry of which nothing is measured, over a definition of the zoo."""
    folder = tmp_path / NAME
    ignored = shutil.ignore_patterns("__pycache__", "parity.json", "bench.json")
    shutil.copytree(zoo_directory() / NAME, folder, ignore=ignored)
    manifest = folder / "nest.toml"
    text = manifest.read_text("utf-8").replace('path = "model.py"', f'path = "@{NAME}/model.py"')
    manifest.write_text(text, "utf-8")
    return folder


def facts(folder: Path) -> Facts:
    card = next(card for card in cards()[0] if card.name == NAME)
    return Facts(replace(card, folder=folder), find(folder))


def shown(folder: Path) -> str:
    found = facts(folder)
    return section(found, read((folder / "README.md").read_text("utf-8"))).text


def row(backend: str, **given: Any) -> dict[str, Any]:
    about = {"output": "forward", "backend": backend, "plan": "exact", "dtype": "f32", "batches": [1, 3]}
    return {**about, "difference": 1.2e-6, "relative": 5e-7, "limit": "5.4e-07 of the largest", **given}


def matrix(folder: Path, *rows: dict[str, Any], program: str | None = None) -> None:
    entry = find(folder)
    run = {
        "configuration": "tiny", "weights": "random", "input": "drawn", "rows": list(rows),
        "program": program or digest(program_of(entry, **entry.manifest.tiny)),
        "conditions": {"date": "2026-11-30", "processor": "A processor", "cpus": 2, "torch": "2.13.0"},
    }  # fmt: skip
    write_parity(folder, [ParityRun.model_validate(run)])


def method(name: str, speed: float | None, **given: Any) -> dict[str, Any]:
    metrics = {} if speed is None else {"pictures_per_s": speed, "peak_mib": 300.0}
    kind = "nest" if name.startswith("nest") else "reference"
    return {"method": name, "kind": kind, "metrics": metrics, "key": name.replace(" ", "-"), **given}


def speed(*methods: dict[str, Any], device: str = "cpu", program: str | None = None) -> BenchRun:
    run = {
        "date": "2026-11-30T10:00:00+00:00",
        "environment": {"processor": "A processor", "cpus": 2, "torch": "2.13.0", "gpu": "A GPU"},
        "workload": {"device": device, "dtype": "f32", "threads": 2, "batch": 1, "weights": "random"},
        "methods": list(methods),
        "reference": None,
    }
    return BenchRun.model_validate(run if program is None else {**run, "program": program})


class TestParity:
    def test_what_is_within_its_bounds(self, folder: Path) -> None:
        matrix(folder, row("torch"), row("torch", plan="fast", difference=2.5e-6), row("jax"))
        text = shown(folder)
        assert "2026-11-30, A processor, 2 CPUs; torch 2.13.0." in text
        # The worst of both plans stands in the table, each of them in the folded one.
        (line,) = re.findall(r"<tr><td>forward</td><td>5.4e-07 rel.</td>.*?</tr>", text)
        assert re.findall(r"<td>(\d\.\de-\d\d)", line) == ["5.4e-07", "2.5e-06", "1.2e-06"]
        assert "By plan, f32: max|Δ|, the worst over batches of 1 and 3" in text
        assert "failed" not in text
        assert summary(facts(folder)).backends == {"torch": True, "jax": True}

    def test_what_failed_is_first_in_words_and_never_a_number(self, folder: Path) -> None:
        wrong = row(
            "jax", output="embed_image", batches=[3], difference=0.5, status="failed", reason="over 5.4e-07"
        )
        matrix(folder, row("torch"), row("jax"), row("torch", output="embed_image"), wrong)
        text = shown(folder)
        assert "<strong>1 row failed</strong>" in text
        assert "<code>embed_image</code> on jax, exact, f32, batch 3: over 5.4e-07 (max|Δ| 5.0e-01)" in text
        assert text.index("<td>embed_image</td>") < text.index("<td>forward</td>")
        assert '<strong class="nest-bad">failed</strong>: over 5.4e-07' in text
        assert not re.search(r"<td>5\.0e-01", text)
        assert summary(facts(folder)).backends == {"torch": True, "jax": False}

    def test_tokens_that_differ_are_told(self, folder: Path) -> None:
        equal = {
            "difference": None,
            "relative": None,
            "limit": None,
            "choices": 24,
            "output": "tokens, cached",
        }
        apart = {**equal, "tokens": "row 0 differs at token 3", "status": "failed"}
        matrix(folder, row("torch", tokens="equal", **equal), row("jax", **apart))
        text = shown(folder)
        assert "<td>equal (24)</td>" in text
        assert "failed</strong>: row 0 differs at token 3" in text

    def test_another_definition_s_numbers_are_not_shown(self, folder: Path) -> None:
        matrix(folder, row("torch"), program="0" * 64)
        text = shown(folder)
        assert "random weights, drawn input, 2026-11-30: of another definition, so not measured." in text
        assert "1.2e-06" not in text
        assert summary(facts(folder)).backends == {}

    def test_a_backend_left_out_says_why(self, folder: Path) -> None:
        out = {
            "output": "load",
            "plan": "",
            "dtype": "bf16",
            "batches": [],
            "difference": None,
            "relative": None,
        }
        matrix(folder, row("torch"), row("onnx", **out, limit=None, status="left out", reason="no bf16"))
        assert "<li>onnx, bf16: no bf16</li>" in shown(folder)
        assert summary(facts(folder)).backends == {"torch": True}

    def test_nothing_measured_says_so(self, folder: Path) -> None:
        text = shown(folder)
        assert "### Parity { #parity }\n\nNot measured." in text
        assert "On a processor: not measured." in text
        assert "On a GPU: not measured." in text
        assert "<table" not in text.partition("### Parity")[2]


HOSTILE = "<b>x</b>\n\n# y [a](b) {: onclick=z }"
"""What a file of somebody else's may have in any text."""


class TestHostile:
    def test_a_matrix_s_texts_are_no_html(self, folder: Path) -> None:
        texts = {"dtype": "<b>f32", "plan": "<b>exact", "output": "<b>out", "limit": "<b>1"}
        failed = {**texts, "output": "<b>bad", "status": "failed", "reason": "<b>no"}
        out = {**texts, "output": "<b>load", "status": "left out", "reason": "<b>left"}
        matrix(folder, row("torch", **texts), row("jax", **{**failed, "tokens": "<b>"}), row("<b>", **out))
        text = shown(folder)
        assert "<b>" not in text
        assert "<summary>By plan, &lt;b&gt;f32: " in text
        assert 'aria-label="Output, Tolerance, torch, &lt;b&gt;f32, jax, &lt;b&gt;f32"' in text

    def test_a_machine_s_name_is_one_line_of_plain_text(self, folder: Path) -> None:
        run = speed(method("nest torch", 10.0))
        write_bench(folder, [run.model_copy(update={"environment": {"processor": HOSTILE}})])
        (heading,) = re.findall(r"^#### .*$", shown(folder), re.MULTILINE)
        assert heading == (
            "#### &#60;b&#62;x&#60;/b&#62; &#35; y &#91;a&#93;(b) &#123;&#58; onclick&#61;z &#125;, 2 threads, f32"
        )
        assert "<b>" not in shown(folder)


def test_figures_of_any_size_are_drawn() -> None:
    for value in (1e308, 1e-300):  # such as no file may have: pages are drawn of runs in memory too
        run = speed(method("nest torch", 10.0), method("nest jax", 1e-3))
        for one in run.methods:
            one.metrics["pictures_per_s"] = value
        assert "width:100%" in speed_chart(run, "image-classification")


class TestSpeed:
    def test_the_fastest_comes_first_with_the_longest_bar(self, folder: Path) -> None:
        write_bench(folder, [speed(method("nest torch", 10.0), method("nest jax, fast", 20.0))])
        text = shown(folder)
        assert text.index("nest jax, fast") < text.index("nest torch")
        assert re.findall(r'nest-bar--nest" style="width:(\d+)%"', text) == ["100", "50"]
        assert "#### A processor, 2 threads, f32" in text
        assert "2026-11-30. batch 1, f32, random weights. torch 2.13.0." in text

    def test_a_method_that_failed_has_words_and_no_bar(self, folder: Path) -> None:
        wrong = method("nest jax", None, error="max|Δ| 0.5 to the reference")
        write_bench(folder, [speed(method("nest torch", 10.0), wrong)])
        text = shown(folder)
        (line,) = re.findall(r"<tr><td>nest jax<br>.*?</tr>", text)
        assert 'class="nest-bad">failed</strong>: max|Δ| 0.5 to the reference' in line
        assert "nest-bar" not in line

    def test_the_index_has_the_best_of_nest_s_that_did_not_fail(self, folder: Path) -> None:
        methods = [
            method("transformers (eager)", 90.0),
            method("nest torch", 10.0),
            method("nest onnx, fast", 30.0),
            method("nest jax", None, error="other results"),
        ]
        write_bench(folder, [speed(*methods)])
        found = summary(facts(folder))
        assert found.cpu is not None
        assert (found.cpu.value, found.cpu.text) == (30.0, "30 pictures/s")
        assert found.cpu.where == (
            "A processor, 2 threads; nest onnx, fast; batch 1, f32, random weights; 2026-11-30"
        )
        assert found.gpu is None

    def test_a_busy_machine_s_times_are_no_speed_of_the_index(self, folder: Path) -> None:
        run = speed(method("nest torch", 10.0))
        busy = run.model_copy(update={"workload": {**run.workload, "load_average": 9.5}})
        write_bench(folder, [busy])
        assert "Other work ran meanwhile (load average 9.5): times are too long, ratios hold." in shown(
            folder
        )
        assert summary(facts(folder)).cpu is None

    def test_another_definition_s_speed_is_not_shown(self, folder: Path) -> None:
        write_bench(folder, [speed(method("nest torch", 10.0), device="cuda", program="0" * 64)])
        assert summary(facts(folder)).gpu is None
        assert "On a GPU: not measured." in shown(folder)


def test_every_entry_of_the_zoo_has_a_small_section() -> None:
    for card in cards()[0]:
        found = Facts.of(card)
        made = section(found, read((found.entry.directory / "README.md").read_text("utf-8")))
        assert len(made.text.encode()) < 25_000, card.name
        assert found.parity, f"{card.name} has no parity.json"
        assert all(current for _, current in found.parity), f"{card.name}: measured of another definition"
        assert all(summary(found).backends.get(name) for name in ("torch", "jax", "nnx", "onnx")), card.name


class TestWordErrors:
    """Of a transcriber; what is of another definition, or of no entry for speech, is not shown."""

    @staticmethod
    def shown_of(folder: Path, name: str = "whisper-tiny.en") -> str:
        unused = shutil.ignore_patterns("__pycache__", "parity.json", "bench.json")
        shutil.copytree(zoo_directory() / name, folder, ignore=unused, dirs_exist_ok=True)
        manifest = folder / "nest.toml"
        text = manifest.read_text("utf-8").replace('path = "model.py"', f'path = "@{name}/model.py"')
        manifest.write_text(text, "utf-8")
        card = next(card for card in cards()[0] if card.name == name)
        found = Facts(replace(card, folder=folder), find(folder))
        return section(found, read((folder / "README.md").read_text("utf-8"))).text

    @staticmethod
    def run(**given: Any) -> EvalRun:
        entry = find("whisper-tiny.en")
        assert entry.manifest.weights is not None
        counts = {"rate": 0.05, "length": 1000, "substitutions": 30, "deletions": 15, "insertions": 5}
        facts = {
            "date": "2026-11-30T10:00:00+00:00",
            "environment": {"processor": "A <processor>", "cpus": 2},
            "data": {"name": "Talks & more", "recordings": 12, "seconds": 600.0, "digest": "0" * 64},
            "settings": {"backend": "onnx", "plan": "fast", "task": "transcribe", "vad": False, "language": "en"},
            "normalizers": ["english"], "words": counts, "characters": {**counts, "length": 5000, "rate": 0.01},
            "real_time_factor": 0.123, "load_s": 0.5, "first_s": 1.0, "peak_mib": 400.0,
            "program": digest(program_of(entry)), "revision": entry.manifest.weights.revision,
        }  # fmt: skip
        return EvalRun.model_validate({**facts, **given})

    def test_a_line_for_each_run(self, tmp_path: Path) -> None:
        write_eval(tmp_path, [self.run()])
        text = self.shown_of(tmp_path)
        cells = re.findall(r"<td>(.*?)</td>", text[text.index("word-error-rate") : text.index("### Speed")])
        assert cells == [
            "Talks &amp; more: 12 recordings, 10 min", "onnx, fast, in en, without voice activity",
            "5.00 % (50 of 1,000)", "1.00 % (50 of 5,000)", "0.123",
            "A &lt;processor&gt;, 2 threads, 2026-11-30; normaliser english",
        ]  # fmt: skip

    @pytest.mark.parametrize("of_another", [{"program": "1" * 64}, {"revision": "0" * 40}])
    def test_of_another_definition_or_weights(self, tmp_path: Path, of_another: dict[str, str]) -> None:
        write_eval(tmp_path, [self.run(**of_another)])
        text = self.shown_of(tmp_path)
        assert "Talks" not in text
        assert "{ #word-error-rate }\n\nNot measured." in text

    def test_other_tasks_have_none(self, tmp_path: Path) -> None:
        assert "word-error-rate" not in self.shown_of(tmp_path, "resnet-18")
