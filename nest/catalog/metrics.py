"""What the figures of `bench.json` are called, and which one of them says how fast a model is at its task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["METRICS", "Metric", "busy", "hardware", "headline", "work_words"]


@dataclass(frozen=True)
class Metric:
    """A figure in words: its heading, its unit, whether more of it is better, and by what it is divided first."""

    title: str
    unit: str
    more_is_better: bool = False
    scale: float = 1

    def text(self, value: float) -> str:
        """`12.3 ms`: three digits, and no more of a unit than they say."""
        return f"{_digits(value / self.scale)} {self.unit}"


METRICS: Mapping[str, Metric] = {
    "tokens_per_s": Metric("Tokens a second", "tokens/s", more_is_better=True),
    "texts_per_s": Metric("Texts a second", "texts/s", more_is_better=True),
    "pictures_per_s": Metric("Pictures a second", "pictures/s", more_is_better=True),
    "task_ms": Metric("From input to result", "ms"),
    "task_tokens_per_s": Metric("Tokens a second, from text", "tokens/s", more_is_better=True),
    "task_texts_per_s": Metric("Texts a second, from text", "texts/s", more_is_better=True),
    "transcribe_ms": Metric("Window to tokens", "ms"),
    "encode_ms": Metric("Encoder", "ms"),
    "embed_ms": Metric("One batch", "ms"),
    "prefill_ms": Metric("Prompt", "ms"),
    "step_ms": Metric("One token", "ms"),
    "generate_ms": Metric("Prompt and new tokens", "ms"),
    "first_s": Metric("First job", "s"),
    "load_s": Metric("Load", "s"),
    "peak_mib": Metric("Peak memory", "MiB"),
    "peak_vram_mib": Metric("Peak device memory", "MiB"),
}
"""In the order in which a chart has them."""

_HEADLINES = {
    "transcription": "transcribe_ms",
    "text-generation": "tokens_per_s",
    "sentence-embedding": "texts_per_s",
    "fill-mask": "texts_per_s",
    "image-classification": "pictures_per_s",
    "image-embedding": "pictures_per_s",
    "image-text-matching": "pictures_per_s",
}


def headline(task: str | None) -> str | None:
    """The metric that says how fast a model is at a task; None where no job is measured."""
    return _HEADLINES.get(task or "")


def hardware(environment: Mapping[str, object], workload: Mapping[str, object]) -> str:
    """`NVIDIA H200` on a GPU; `AMD EPYC, 2 threads` on a processor."""
    if workload.get("device") == "cuda":
        return str(environment.get("gpu", "a GPU"))
    threads = workload.get("threads", environment.get("cpus"))
    words = f", {threads} thread{'' if threads == 1 else 's'}" if threads is not None else ""
    return f"{environment.get('processor', 'a processor')}{words}"


def busy(environment: Mapping[str, object], workload: Mapping[str, object]) -> bool:
    """Whether more wanted to run than there were processors: then ratios hold, and times are too long."""
    load, cpus = workload.get("load_average"), environment.get("cpus")
    return isinstance(load, int | float) and isinstance(cpus, int | float) and load > cpus + 0.5


_WORK = (
    ("audio_s", "{} s of audio"),
    ("prompt_tokens", "a prompt of {} tokens"),
    ("new_tokens", "{} new tokens"),
    ("text_tokens", "texts of {} tokens"),
    ("texts", "{} sentences"),
    ("batch", "batch {}"),
    ("dtype", "{}"),
    ("weights", "{} weights"),
)


def work_words(workload: Mapping[str, object]) -> str:
    """`a prompt of 128 tokens, 32 new tokens, batch 1, f32, random weights`."""
    return ", ".join(words.format(workload[key]) for key, words in _WORK if key in workload)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
