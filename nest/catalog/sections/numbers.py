"""Numbers: how exact the entry is on each backend, how well it does its task, and how fast."""

from __future__ import annotations

from nest.catalog.errors_table import errors_table
from nest.catalog.facts import Facts
from nest.catalog.markup import escape, in_markdown
from nest.catalog.metrics import busy, hardware, work_words
from nest.catalog.parity_table import conditions_words, parity_table
from nest.catalog.readme import Readme
from nest.catalog.section import Section
from nest.catalog.speed_chart import speed_chart
from nest.registry.bench import BENCH_FILE, BenchRun
from nest.registry.evaluations import EVAL_FILE
from nest.registry.parity import PARITY_FILE, ParityRun

__all__ = ["section"]

_SIZES = {"full": "The entry's own size", "tiny": "The tiny configuration"}


def section(facts: Facts, readme: Readme) -> Section:
    """What the README promises of numbers, the parity matrix as it was measured, word errors, then speed and memory."""
    parts = [readme.section("Numerics"), *_exactness(facts), *_errors(facts), *_speed(facts)]
    folder = facts.entry.directory
    files = {
        name: folder / name for name in (PARITY_FILE, EVAL_FILE, BENCH_FILE) if (folder / name).is_file()
    }
    return Section("Numbers", "numbers", "\n\n".join(part for part in parts if part), files)


def _exactness(facts: Facts) -> list[str]:
    parts = ["### Parity { #parity }"]
    current = [run for run, now in facts.parity if now]
    if current:
        parts.append(
            "The largest difference of each output to the same definition in double precision, max|Δ|, the worst over "
            "plans and batches; *rel.* is that over the largest value. The reference library's own distance stands "
            f"beside it. [Every row]({PARITY_FILE})."
        )
    # The checkpoint's own numbers say more than those of a small model with random weights.
    for run in sorted(current, key=lambda run: (run.configuration != "full", run.weights != "real")):
        parts += [f"#### {_title(run)}", f"<p>{escape(_when(run))}</p>", parity_table(run)]
    stale = [run for run, now in facts.parity if not now]
    parts += [
        f"{_title(run)}, {in_markdown(_date(run))}: of another definition, so not measured." for run in stale
    ]
    if not any(run.weights == "real" for run in current):
        parts.append("With the checkpoint's weights: not measured.")
    return parts if facts.parity else [parts[0], "Not measured."]


def _title(run: ParityRun) -> str:
    given = "real audio" if run.input == "audio" else "drawn input"
    return f"{_SIZES[run.configuration]}, {run.weights} weights, {given}"


def _date(run: ParityRun) -> str:
    return str(run.conditions.get("date", "no date"))


def _when(run: ParityRun) -> str:
    return f"{_date(run)}, {conditions_words(run)}."


def _errors(facts: Facts) -> list[str]:
    """How many words a transcriber gets wrong; other tasks have no such numbers."""
    if facts.task != "transcription":
        return []
    parts = ["### Word error rate { #word-error-rate }"]
    current = [run for run, now in facts.evaluations if now]
    if not current:
        return [*parts, "Not measured."]
    parts.append(
        "Edits that make the transcript of the text, by the words of the transcript, after Whisper's normaliser; "
        f"counted by `nest eval`. [All figures]({EVAL_FILE})."
    )
    return [*parts, errors_table(current)]


def _speed(facts: Facts) -> list[str]:
    parts = ["### Speed and memory { #speed }"]
    current = [run for run, now in facts.bench if now]
    if current:
        parts.append(
            f"Medians, with the least and the most; methods took turns in one run. [All figures]({BENCH_FILE})."
        )
    for run in current:
        parts += [
            f"#### {in_markdown(_place(run))}",
            f"<p>{escape(_work(run))}</p>",
            speed_chart(run, facts.task),
        ]
    for device, words in (("cpu", "On a processor"), ("cuda", "On a GPU")):
        if not any(run.workload.get("device") == device for run in current):
            parts.append(f"{words}: not measured.")
    return parts


def _place(run: BenchRun) -> str:
    where = hardware(run.environment, run.workload)
    return f"{where}, {run.workload['dtype']}" if "dtype" in run.workload else where


def _work(run: BenchRun) -> str:
    packages = (
        "torch", "jax", "flax", "onnxruntime", "transformers", "faster-whisper", "ctranslate2", "openai-whisper",
        "pywhispercpp", "sentence-transformers", "llama-cpp-python",
    )  # fmt: skip
    versions = ", ".join(f"{name} {run.environment[name]}" for name in packages if name in run.environment)
    said = f"{run.date[:10]}. {work_words(run.workload)}. {versions}."
    if busy(run.environment, run.workload):
        load = run.workload["load_average"]
        said += f" Other work ran meanwhile (load average {load}): times are too long, ratios hold."
    return said
