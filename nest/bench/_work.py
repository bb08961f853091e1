"""What is measured of an entry: its job, as arrays that every contender is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from nest.ir.dim import Dim
from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.speech import recordings_of

__all__ = ["CAPACITY", "Job", "Kind", "Work", "figures", "job_of"]

Array = np.ndarray[Any, Any]
Kind = Literal["speech", "decoder", "text", "pictures"]

CAPACITY = 256
"""Slots of a decoder's caches: for the prompt and the new tokens, up to a power of two."""


@dataclass(frozen=True)
class Work:
    """One workload. `entry` is a name or a folder; `weights` `real` or `random`; tokens are counts."""

    entry: str
    device: str = "cpu"
    dtype: str = "f32"
    weights: str = "random"
    threads: int = 2
    batch: int = 1
    prompt_tokens: int = 128
    new_tokens: int = 32
    text_tokens: int = 64
    texts: int = 64
    seed: int = 0

    def facts(self, kind: Kind) -> dict[str, str | int | float]:
        """As `bench.json` has it: what counts for this kind of job."""
        left_out = {"entry", *_OTHERS[kind]} | ({"threads"} if self.device != "cpu" else set())
        left_out |= set() if self.weights == "real" and kind == "text" else {"texts"}
        found = {name: value for name, value in asdict(self).items() if name not in left_out}
        return {**found, "audio_s": 30} if kind == "speech" else found


_OTHERS: Mapping[Kind, set[str]] = {
    "speech": {"prompt_tokens", "text_tokens"},
    "decoder": {"text_tokens"},
    "text": {"prompt_tokens", "new_tokens"},
    "pictures": {"prompt_tokens", "new_tokens", "text_tokens"},
}


_COUNTED: Mapping[str, tuple[str, Callable[[Work], int]]] = {
    "decoder": ("tokens", lambda work: work.new_tokens),
    "text": ("texts", lambda work: work.texts),
}
"""What a whole job makes, and how much of it."""


@dataclass(frozen=True)
class Job:
    """A kind of job, the entry that does it, and its arguments by name, in the order of the entry's signature."""

    kind: Kind
    output: str
    arguments: dict[str, Array]
    new_tokens: int


def job_of(entry: Entry, program: Program, work: Work) -> Job:
    """The job of an entry's task.

    Raises:
        KeyError: the definition has none of the entries that a job is made of.
    """
    drawn = np.random.default_rng(work.seed)
    if {"listen", "prefill", "step"} <= program.entries.keys():
        return _speech(entry, program, work, drawn)
    if {"prefill", "step"} <= program.entries.keys():
        ids = drawn.integers(0, _sizes(program)["Vocab"], (work.batch, work.prompt_tokens)).astype(np.int32)
        return Job("decoder", "prefill", {"tokens": ids}, work.new_tokens)
    name = entry.manifest.source.entry
    # Two encoders are compared by a third entry, which is given their vectors.
    name = "embed_image" if "embed_image" in program.entries and name == "similarity" else name
    arguments = _arguments(program, name, work, drawn)
    return Job("pictures" if "pixels" in arguments else "text", name, arguments, 0)


def _speech(entry: Entry, program: Program, work: Work, drawn: np.random.Generator) -> Job:
    heard = recordings_of(entry, work.new_tokens) if work.weights == "real" else None
    if heard is not None:
        mel, prompt = heard.mel[:1], np.array(heard.decoding.prompts[:1], np.int32)
    else:
        sizes = _sizes(program)
        mel = drawn.standard_normal((1, sizes["Mels"], sizes["Frames"])).astype(np.float32)
        prompt = drawn.integers(0, sizes["Vocab"], (1, 4)).astype(np.int32)
    rows = (work.batch, 1)
    return Job(
        "speech",
        "encode",
        {"mel": np.tile(mel, (*rows, 1)), "tokens": np.tile(prompt, rows)},
        work.new_tokens,
    )


def _arguments(program: Program, name: str, work: Work, drawn: np.random.Generator) -> dict[str, Array]:
    sizes = _sizes(program)
    known = {**sizes, "B": work.batch, "S": min(work.text_tokens, sizes.get("MaxTokens", work.text_tokens))}
    bound = {symbol: Dim.constant(size) for symbol, size in known.items()}
    found: dict[str, Array] = {}
    for parameter in program.entries[name].signature.parameters:
        shape = tuple(int(dim.substitute(bound)) for dim in parameter.type.shape)
        found[parameter.name] = _drawn(parameter.name, parameter.type.dtype.kind, shape, known, drawn)
    return found


def _drawn(
    name: str, kind: str, shape: tuple[int, ...], sizes: Mapping[str, int], drawn: np.random.Generator
) -> Array:
    if name == "lengths":
        return np.full(shape, sizes["S"], np.int32)
    if kind == "bool":
        return np.ones(shape, np.bool_)
    if kind == "int":
        top = sizes["Vocab"] if name == "tokens" else 1
        return drawn.integers(0, top, shape).astype(np.int32)
    return drawn.standard_normal(shape).astype(np.float32)


def _sizes(program: Program) -> dict[str, int]:
    return {n: int(d) for n, d in program.root.generics.items() if isinstance(d, Dim) and d.value is not None}


def figures(kind: Kind, work: Work, ms: Mapping[str, float]) -> dict[str, float]:
    """The metrics of `bench.json` from the medians of the pieces."""
    found = {f"{name}_ms": value for name, value in ms.items()}
    if "task" in ms and kind in _COUNTED:
        unit, count = _COUNTED[kind]
        found[f"task_{unit}_per_s"] = 1e3 * count(work) / ms["task"]
    if kind == "decoder" and "generate" in ms:
        found["tokens_per_s"] = 1e3 * work.batch * work.new_tokens / ms["generate"]
        if "prefill" in ms and work.new_tokens > 1:
            found["step_ms"] = max(0.0, ms["generate"] - ms["prefill"]) / (work.new_tokens - 1)
    if kind in ("text", "pictures") and "embed" in ms:
        found[f"{kind}_per_s".replace("text_", "texts_")] = 1e3 * work.batch / ms["embed"]
    return found
