"""Greedy decoding by a text decoder on one GPU, nest beside transformers, in one run.

    python -m nest.bench.decoder_gpu [--entry qwen2.5-0.5b-instruct] [--prompt 16 --tokens 128] [--batch 1 64] [--json]

Work: random ids as a prompt, so many greedy tokens, no early end, random weights of an entry's shapes in bf16, caches
of as many slots as the work needs. Times are medians of whole calls that end with the ids on the host. Tokens a second
are those after the first: the time of the prompt, which is that of a call for one token, is taken off. Tokens are
compared with those of nest's exact plan in f32 (`equal`: how many of a row's first are the same, the mean over rows);
where those of bf16 leave f32's is a matter of rounding, so that row stands beside nest's exact plan in bf16.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import nest
from nest.bench.whisper_gpu import _drawn
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.registry import find
from nest.verify.library import library_of

__all__ = ["main"]

Array = np.ndarray[Any, Any]
# From how many tokens are wanted to the ids [Batch, tokens].
Job = Callable[[int], Array]


@dataclass(frozen=True)
class Work:
    """What everyone does."""

    entry: str
    prompt: int
    tokens: int
    batch: int
    runs: int


@dataclass
class Row:
    """One variant: milliseconds of the whole and of the first token, tokens a second after it, equal tokens."""

    variant: str
    batch: int
    total_ms: float | None = None
    first_ms: float | None = None
    tokens_a_second: float | None = None
    equal: float | None = None
    note: str = ""


def _parameters(entry: str) -> dict[str, Array]:
    """Random weights under which tokens vary, so that comparing them says something, and few logits are nearly equal.

    With larger matrices a decoder of random weights is chaotic: rounding to bf16 changes the second token.
    """
    params = _drawn(parameters(program_of(entry)))
    return {path: array * 3 if "embedding" in path else array for path, array in params.items()}


def _vocabulary(entry: str) -> int:
    size = program_of(entry).root.generics["Vocab"].value
    assert isinstance(size, int)
    return size


def _prompt(work: Work) -> Array:
    ids = np.random.default_rng(0).integers(0, _vocabulary(work.entry), (work.batch, work.prompt))
    return ids.astype(np.int32)


def _nest_job(model: Any, work: Work, prompt: Array, **options: Any) -> Job:
    import torch

    session = model.new_session(Batch=work.batch, Capacity=work.prompt + work.tokens, **options)
    given, zero = torch.from_numpy(prompt).cuda(), torch.zeros(_vocabulary(work.entry), device="cuda")
    lengths = torch.full((work.batch,), work.prompt, dtype=torch.int32, device="cuda")
    end = torch.tensor(-1, dtype=torch.int32, device="cuda")
    places = {n: torch.zeros(work.batch, n, dtype=torch.int32, device="cuda") for n in (1, work.tokens)}

    def job(count: int) -> Array:
        ids, *_ = session.greedy(given, places[count], end, zero, zero, lengths)
        found: Array = session.numpy(ids)
        return found

    return job


def _library_job(params: dict[str, Array], work: Work, prompt: Array, *, compiled: bool) -> Job:
    import torch

    model = (
        library_of(find(work.entry), program_of(work.entry), params).model.eval().to("cuda", torch.bfloat16)
    )
    given = torch.from_numpy(prompt).long().cuda()
    # A cache of a fixed size is what lets the library compile a step.
    more: dict[str, Any] = {"cache_implementation": "static"} if compiled else {}

    @torch.no_grad()
    def job(count: int) -> Array:
        ids = model.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=count, min_new_tokens=count, do_sample=False,
            eos_token_id=None, pad_token_id=0, **more,
        )  # fmt: skip
        found: Array = ids[:, work.prompt :].cpu().numpy()
        return found

    return job


def _row(name: str, job: Job, work: Work, expected: Array | None) -> Row:
    row = Row(name, work.batch)
    times = {}
    for count in (1, work.tokens):
        taken = []
        for _ in range(3):
            job(count)
        for _ in range(work.runs):
            start = time.perf_counter()
            ids = job(count)
            taken.append(time.perf_counter() - start)
        times[count] = statistics.median(taken)
    row.total_ms, row.first_ms = 1e3 * times[work.tokens], 1e3 * times[1]
    row.tokens_a_second = work.batch * (work.tokens - 1) / (times[work.tokens] - times[1])
    if expected is not None:
        row.equal = float(np.cumprod(ids == expected, axis=1).sum(axis=1).mean())
    if len(np.unique(ids)) < 5:
        row.note = "few different tokens"
    return row


def measure(works: list[Work], only: str = "") -> list[Row]:
    """All rows of all works; a variant that fails says why and has no numbers."""
    params = _parameters(works[0].entry)
    options: dict[str, Any] = {"weights": params, "backend": "torch", "device": "cuda"}
    exact = nest.load(works[0].entry, dtype="f32", **options)
    expected = {w: _nest_job(exact, w, _prompt(w), graphs=True)(w.tokens) for w in works}
    del exact
    model = nest.load(works[0].entry, dtype="bf16", **options)
    makers: dict[str, Callable[[Work, Array], Job]] = {
        "nest torch, fast, CUDA graphs, bf16": lambda w, p: _nest_job(model, w, p, plan="fast", graphs=True),
        "nest torch, CUDA graphs, bf16": lambda w, p: _nest_job(model, w, p, graphs=True),
        "transformers, generate(), bf16": lambda w, p: _library_job(params, w, p, compiled=False),
        "transformers, generate(), static cache, compiled, bf16": lambda w, p: _library_job(
            params, w, p, compiled=True
        ),
    }
    rows = []
    for work in works:
        for name, maker in makers.items():
            if any(text in name for text in only.split("|")):
                try:
                    rows.append(_row(name, maker(work, _prompt(work)), work, expected[work]))
                except Exception as error:
                    rows.append(
                        Row(name, work.batch, note=f"failed: {type(error).__name__}: {str(error)[:160]}")
                    )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.decoder_gpu")
    parser.add_argument("--entry", default="qwen2.5-0.5b-instruct")
    parser.add_argument("--prompt", type=int, default=16, help="ids before the first new one")
    parser.add_argument("--tokens", type=int, default=128, help="new ones of each row")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64], help="rows")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", help="variants whose name has one of these texts, split by |")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    rows = measure([Work(a.entry, a.prompt, a.tokens, batch, a.runs) for batch in a.batch], a.only)
    if a.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    import torch

    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {a.entry}, a prompt of {a.prompt} ids, ",
        end="",
    )
    print(f"{a.tokens} tokens, median of {a.runs}\n")
    print(
        "| variant | batch | total ms | first token ms | tokens/s | equal | |\n|---|---|---|---|---|---|---|"
    )
    for r in rows:
        cells = [r.total_ms, r.first_ms, r.tokens_a_second, r.equal]
        shown = " | ".join("" if x is None else f"{x:.1f}" for x in cells)
        print(f"| {r.variant} | {r.batch} | {shown} | {r.note} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
