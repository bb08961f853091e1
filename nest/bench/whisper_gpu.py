"""Whole decodes of Whisper on one GPU, each backend beside transformers, in one run.

    python -m nest.bench.whisper_gpu [--entry whisper-large-v3] [--only 'torch, fast|transformers'] [--encode]

Work: one 30 s window, a 4-token prompt, 24 greedy tokens, batch 1, random weights of an entry's shapes, no early end.
Times are medians of whole calls that end with the ids on the host; the encoder is part of each. Caches hold the model's
full 448 positions and every variant takes any prompt length. Tokens are compared with those of transformers in f32 for
the f32 variants; for f16 the number of equal leading tokens is shown. The states that the encoder gives are compared
with transformers' in f32 in any case. The device column is the time between two events around calls that follow each
other, so that what the host takes to begin one is left out where it is the shorter.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import nest
from nest.bench.whisper_parity import lively, reference_model
from nest.ir.inventory import parameters
from nest.ir.types import ParamSpec
from nest.loading import program_of
from nest.registry import find
from nest.weights.random import random_parameters

__all__ = ["main"]

PROMPT = [50258, 50259, 50359, 50363]
NEW = 24

Array = np.ndarray[Any, Any]
Job = Callable[[], list[int]]
# Name, options of nest.load, options of new_session.
Variant = tuple[str, dict[str, Any], dict[str, Any]]


@dataclass
class Row:
    """One variant: milliseconds of the whole job and of the encoder alone, and results against transformers' in f32.

    `encode_error` is the norm of the states' difference over the norm of the states.
    """

    variant: str
    total_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    encode_ms: float | None = None
    device_ms: float | None = None
    encode_error: float | None = None
    equal_tokens: int | None = None
    note: str = ""


def _parameters(entry: str) -> dict[str, Array]:
    """Random weights under which tokens vary, so that comparing them says something."""
    params = lively(_drawn(parameters(program_of(entry))))
    params["token_embedding"] *= 3
    for path, array in params.items():
        if "decoder_layers" in path and array.ndim == 2:
            params[path] = array * 2
    return params


def _drawn(specs: dict[str, ParamSpec]) -> dict[str, Array]:
    """Random parameters; of a large model, matrices of one shape are one matrix with its rows turned, drawn once."""
    if sum(math.prod(spec.shape) for spec in specs.values()) < 1 << 28:
        return random_parameters(specs, seed=1)
    first: dict[tuple[object, ...], Array] = {}
    drawn: dict[str, Array] = {}
    for count, (path, spec) in enumerate(specs.items()):
        key = spec.shape, spec.init
        if key not in first:
            first[key] = random_parameters({path: spec}, seed=1)[path]
        drawn[path] = np.roll(first[key], count, axis=0)
    return drawn


def _times(job: Callable[[], Any], runs: int, wait: Callable[[], None]) -> list[float]:
    for _ in range(4):
        job()
    wait()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        job()
        wait()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken


def _nest_job(model: Any, session: Any, mel: Any) -> tuple[Job, Callable[[], Any]]:
    vocab = session.program.root.generics["Vocab"].value
    zero, out = _on_device(model, np.zeros(vocab, np.float32)), np.zeros((1, NEW), np.int32)
    prompt, lengths = np.array([PROMPT], np.int32), np.array([len(PROMPT)], np.int32)

    def job() -> list[int]:
        ids, *_ = session.hear(mel, prompt, out, np.int32(-1), zero, zero, lengths)
        tokens: list[int] = session.numpy(ids)[0].tolist()
        return tokens

    return job, lambda: session.listen(mel)


def _library_jobs(model: Any, mel: Any, dtype: str) -> dict[str, tuple[Job, Callable[[], Any]]]:
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    mel = torch.from_numpy(mel).to("cuda", model.dtype)
    prompt = torch.tensor([PROMPT], device="cuda")

    @torch.no_grad()
    def cached_loop() -> list[int]:
        states = model.model.encoder(mel)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        tokens: list[int] = []
        given = prompt
        for _ in range(NEW):
            logits = model(
                encoder_outputs=states, decoder_input_ids=given, past_key_values=cache, use_cache=True
            ).logits
            given = logits[:, -1].argmax(-1, keepdim=True)
            tokens.append(int(given))
        return tokens

    @torch.no_grad()
    def generate() -> list[int]:
        ids = model.generate(
            input_features=mel, decoder_input_ids=prompt, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False,
            suppress_tokens=None, begin_suppress_tokens=None, return_timestamps=False, forced_decoder_ids=None,
        )  # fmt: skip
        tokens: list[int] = ids[0].tolist()[-NEW:]
        return tokens

    def encode() -> Any:
        with torch.no_grad():
            return model.model.encoder(mel).last_hidden_state

    return {
        f"transformers, cached loop, {dtype}": (cached_loop, encode),
        f"transformers, generate(), {dtype}": (generate, encode),
    }


def _variants() -> list[Variant]:
    rows: list[Variant] = []
    for dtype in ("f32", "f16"):
        torch_options = {"backend": "torch", "device": "cuda", "dtype": dtype}
        rows += [
            (f"nest torch, eager, {dtype}", torch_options, {}),
            (f"nest torch, CUDA graphs, {dtype}", torch_options, {"graphs": True}),
            (f"nest torch, fast, CUDA graphs, {dtype}", torch_options, {"plan": "fast", "graphs": True}),
            (f"nest jax, {dtype}", {"backend": "jax", "dtype": dtype}, {}),
            (f"nest nnx, {dtype}", {"backend": "nnx", "dtype": dtype}, {}),
            (f"nest jax, fast, {dtype}", {"backend": "jax", "dtype": dtype}, {"plan": "fast"}),
            (f"nest nnx, fast, {dtype}", {"backend": "nnx", "dtype": dtype}, {"plan": "fast"}),
        ]
    return rows


def measure(runs: int, only: str = "", entry: str = "whisper-tiny", encode_alone: bool = False) -> list[Row]:
    """All rows, the library's first; a variant that fails says why and has no numbers."""
    import torch

    params = _parameters(entry)
    found = find(entry)
    shape = (1, int(found.generics["Mels"]), int(found.generics["Frames"]))
    mel = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    measured = _Measured(runs, encode_alone)
    rows: list[Row] = []
    library = reference_model(found, params).cuda()
    for dtype in ("f32", "f16"):
        library = library.half() if dtype == "f16" else library
        for name, jobs in _library_jobs(library, mel, dtype).items():
            # The first row is what others are compared with, wanted or not.
            if _wanted(name, only) or not rows:
                rows.append(measured.row(name, *jobs))
    del library, jobs
    for variant in (v for v in _variants() if _wanted(v[0], only)):
        try:
            rows.append(_variant_row(measured, variant, entry, params, mel))
        except Exception as error:
            rows.append(Row(variant[0], note=f"failed: {type(error).__name__}: {str(error)[:160]}"))
        torch.cuda.empty_cache()
    return rows


def _variant_row(
    measured: _Measured, variant: Variant, entry: str, params: dict[str, Array], mel: Array
) -> Row:
    """The row of one of nest's, whose memory is free again afterwards."""
    name, options, session_options = variant
    model = nest.load(entry, weights=params, **options)
    return measured.row(name, *_nest_job(model, model.new_session(**session_options), _on_device(model, mel)))


def _wanted(name: str, only: str) -> bool:
    return any(text in name for text in only.split("|"))


def _on_device(model: Any, mel: Array) -> Any:
    """An input where the model is, so that the copy is no part of any variant's time."""
    if hasattr(model, "device") and "cuda" in str(model.device):
        import torch

        return torch.from_numpy(mel).cuda()
    import jax

    return jax.device_put(mel)


class _Measured:
    """Rows of one run; the first gives the tokens and the states that all are compared with."""

    def __init__(self, runs: int, encode_alone: bool) -> None:
        self.runs, self.encode_alone = runs, encode_alone
        self.tokens: list[int] = []
        self.states: Array | None = None

    def row(self, name: str, job: Job, encode: Callable[[], Any]) -> Row:
        """The row of one variant, given the whole job and its encoder."""
        import torch

        wait = torch.cuda.synchronize
        row = Row(name, encode_ms=statistics.median(_times(lambda: _ready(encode()), self.runs, wait)))
        states = encode()
        if isinstance(states, torch.Tensor):
            row.device_ms = _device_ms(encode, self.runs)
            states = states.detach().float().cpu().numpy()
        states = np.asarray(states, np.float32)
        self.states = states if self.states is None else self.states
        row.encode_error = float(np.linalg.norm(states - self.states) / np.linalg.norm(self.states))
        if not self.encode_alone:
            totals = _times(job, self.runs, wait)
            row.total_ms, row.low_ms, row.high_ms = statistics.median(totals), min(totals), max(totals)
            tokens = job()
            self.tokens = self.tokens or tokens
            pairs = zip(tokens, self.tokens, strict=True)
            row.equal_tokens = next((i for i, (a, b) in enumerate(pairs) if a != b), NEW)
            row.note = "" if len(set(tokens)) > 4 else "few different tokens"
        return row


def _device_ms(call: Callable[[], Any], runs: int) -> float:
    """Milliseconds of a call, of `runs` that the host gives one after another."""
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(runs):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / runs


def _ready(result: Any) -> None:
    block = getattr(result, "block_until_ready", None)
    if block is not None:
        block()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.whisper_gpu")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="variants whose name has one of these texts, split by |")
    parser.add_argument("--entry", default="whisper-tiny", help="the entry whose shapes are run")
    parser.add_argument("--encode", action="store_true", help="the encoder alone")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = measure(arguments.runs, arguments.only, arguments.entry, arguments.encode)
    if arguments.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    import torch

    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments.entry}, median of {arguments.runs}\n"
    )
    print("| variant | total ms | min | max | encode ms | on the device | its error | equal tokens of 24 | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        numbers = [r.total_ms, r.low_ms, r.high_ms, r.encode_ms, r.device_ms]
        cells = [
            *("" if x is None else f"{x:.3f}" for x in numbers),
            "" if r.encode_error is None else f"{r.encode_error:.1e}",
        ]
        cells += ["" if r.equal_tokens is None else str(r.equal_tokens), r.note]
        print(f"| {r.variant} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
