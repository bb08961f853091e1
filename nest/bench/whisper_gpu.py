"""Whole decodes of whisper-tiny on one GPU, each backend beside transformers, in one run.

    python -m nest.bench.whisper_gpu [--runs 20] [--json]

Work: one 30 s window, a 4-token prompt, 24 greedy tokens, batch 1, random weights of whisper-tiny's shapes, no early
end. Times are medians of whole calls that end with the ids on the host; the encoder is part of each. Caches hold the
model's full 448 positions and every variant takes any prompt length. Tokens are compared with those of transformers in
f32 for the f32 variants; for f16 the number of equal leading tokens is shown.
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
from nest.bench.whisper_parity import lively, reference_model
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.registry import find
from nest.weights.random import random_parameters

__all__ = ["main"]

PROMPT = [50258, 50259, 50359, 50363]
NEW = 24

Array = np.ndarray[Any, Any]
Job = Callable[[], list[int]]


@dataclass
class Row:
    """One variant: median milliseconds of the whole job and of the encoder alone, and the tokens against f32's."""

    variant: str
    total_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    encode_ms: float | None = None
    equal_tokens: int | None = None
    note: str = ""


def _parameters() -> dict[str, Array]:
    """Random weights under which tokens vary, so that comparing them says something."""
    params = lively(random_parameters(parameters(program_of("whisper-tiny")), seed=1))
    params["token_embedding"] *= 3
    for path, array in params.items():
        if "decoder_layers" in path and array.ndim == 2:
            params[path] = array * 2
    return params


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


def _library_jobs(model: Any, mel: Any) -> dict[str, tuple[Job, Callable[[], Any]]]:
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    mel = torch.from_numpy(mel).cuda()
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
            return model.model.encoder(mel)

    return {
        "transformers, cached loop, f32": (cached_loop, encode),
        "transformers, generate(), f32": (generate, encode),
    }


def _variants() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, options of nest.load, options of new_session."""
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
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


def measure(runs: int, only: str = "") -> list[Row]:
    """All rows, the library's first; a variant that fails says why and has no numbers."""
    import torch

    params = _parameters()
    mel = np.random.default_rng(0).standard_normal((1, 80, 3000)).astype(np.float32)
    wait = torch.cuda.synchronize
    rows: list[Row] = []
    expected: list[int] = []
    library = reference_model(find("whisper-tiny"), params).cuda()
    for name, (job, encode) in _library_jobs(library, mel).items():
        rows.append(_row(name, job, encode, runs, wait, expected))
        expected = expected or job()
    for name, options, session_options in _variants():
        if not any(text in name for text in only.split("|")):
            continue
        try:
            model = nest.load("whisper-tiny", weights=params, **options)
            job, encode = _nest_job(model, model.new_session(**session_options), _on_device(model, mel))
            rows.append(_row(name, job, encode, runs, wait, expected))
        except Exception as error:
            rows.append(Row(name, note=f"failed: {type(error).__name__}: {str(error)[:160]}"))
    return rows


def _on_device(model: Any, mel: Array) -> Any:
    """An input where the model is, so that the copy is no part of any variant's time."""
    if hasattr(model, "device") and "cuda" in str(model.device):
        import torch

        return torch.from_numpy(mel).cuda()
    import jax

    return jax.device_put(mel)


def _row(
    name: str, job: Job, encode: Callable[[], Any], runs: int, wait: Callable[[], None], expected: list[int]
) -> Row:
    totals = _times(job, runs, wait)
    encodes = _times(lambda: _ready(encode()), runs, wait)
    tokens = job()
    equal = (
        NEW
        if not expected
        else next((i for i, (a, b) in enumerate(zip(tokens, expected, strict=True)) if a != b), NEW)
    )
    return Row(
        name, statistics.median(totals), min(totals), max(totals), statistics.median(encodes), equal,
        note="" if len(set(tokens)) > 4 else "few different tokens",
    )  # fmt: skip


def _ready(result: Any) -> None:
    block = getattr(result, "block_until_ready", None)
    if block is not None:
        block()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.whisper_gpu")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="variants whose name has one of these texts, split by |")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = measure(arguments.runs, arguments.only)
    if arguments.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    import torch

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, median of {arguments.runs}\n")
    print(
        "| variant | total ms | min | max | encode ms | equal tokens of 24 | |\n|---|---|---|---|---|---|---|"
    )
    for r in rows:
        numbers = [r.total_ms, r.low_ms, r.high_ms, r.encode_ms]
        cells = " | ".join("" if x is None else f"{x:.2f}" for x in numbers)
        print(f"| {r.variant} | {cells} | {'' if r.equal_tokens is None else r.equal_tokens} | {r.note} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
