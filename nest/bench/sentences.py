"""Sentence vectors of each backend beside transformers': how far apart they are, and how many texts a second.

    python -m nest.bench.sentences [--count 1000] [--rounds 1] [--backends torch,onnx,jax,nnx] [--fast] [--json]

The texts are cut from English that comes with Python (`pydoc_data.topics`), from 1 to 200 words, short ones more often;
a few are empty, long, or of other scripts. Everyone has the same texts and does the whole job, from text to vectors:
nest by `nest.pipeline`, transformers by its fast tokenizer, texts sorted by length, batches of 32 padded to the
longest, its BERT, the mean, and scaling. One process; rounds go in turn, after one that compiles and warms up. `busy`
seconds are those that all threads of the process worked: on a machine that others use, they say more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import nest
from nest.bench._task import ragged_texts
from nest.registry import Entry, find
from nest.weights import fetch

__all__ = ["Row", "library", "measure"]

NAME = "all-MiniLM-L6-v2"
BATCH = 32
Vectors = np.ndarray[Any, Any]
Job = Callable[[Sequence[str]], Vectors]


@dataclass
class Row:
    """One contender: distances to the library's vectors, and seconds of the whole job, the median of rounds.

    `cosine` is the largest of 1 - cos, in f64; `largest` is max|Δ|. `beside` is the library's busy seconds by its own.
    """

    contender: str
    cosine: float
    largest: float
    seconds: float
    busy: float
    texts_per_second: float
    beside: float


def library(entry: Entry) -> Job:
    """transformers' tokenizer, BERT, mean and scaling, over the entry's own files."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    files = fetch(entry, ["model.safetensors", "tokenizer.json", "config.json"]).files
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_file=str(files["tokenizer.json"]), pad_token="[PAD]", model_max_length=256)
    config: Any = BertConfig.from_json_file(str(files["config.json"]))
    model: Any = BertModel(config, add_pooling_layer=False)
    model.load_state_dict(_tensors(files["model.safetensors"]), strict=False)

    model.requires_grad_(False).train(False)

    def embed(texts: Sequence[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors = np.empty((len(texts), int(model.config.hidden_size)), np.float32)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            given = tokenizer([texts[i] for i in chosen], padding=True, truncation=True, return_tensors="pt")
            with torch.no_grad():
                states = model(**given).last_hidden_state
                counted = given["attention_mask"][..., None].to(states.dtype)
                mean = (states * counted).sum(1) / counted.sum(1)
                vectors[chosen] = torch.nn.functional.normalize(mean, dim=1).numpy()
        return vectors

    return embed


def _tensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return {
        n: t for n, t in load_file(path).items() if not n.startswith("pooler") and "position_ids" not in n
    }


def measure(
    texts: Sequence[str], backends: Sequence[str], *, rounds: int = 1, plan: str = "exact"
) -> list[Row]:
    """The library's row, and one for each backend."""
    jobs: dict[str, Job] = {"transformers": library(find(NAME))}
    for backend in backends:
        jobs[f"nest {backend}"] = nest.pipeline(NAME, backend=backend, plan=plan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that long texts are cut is part of the job
        vectors = {name: job(texts) for name, job in jobs.items()}
        turns = [{name: _timed(job, texts) for name, job in jobs.items()} for _ in range(rounds)]
    right = vectors["transformers"].astype(np.float64)
    rows = []
    for name, made in vectors.items():
        wall, busy = (statistics.median(turn[name][i] for turn in turns) for i in (0, 1))
        beside = statistics.median(turn["transformers"][1] / turn[name][1] for turn in turns)
        cosine = (
            (made * right).sum(1)
            / np.linalg.norm(made.astype(np.float64), axis=1)
            / np.linalg.norm(right, axis=1)
        )
        largest = float(np.abs(made - right).max())
        rows.append(Row(name, float((1 - cosine).max()), largest, wall, busy, len(texts) / wall, beside))
    return rows


def _timed(job: Job, texts: Sequence[str]) -> tuple[float, float]:
    wall, busy = perf_counter(), process_time()
    job(texts)
    return perf_counter() - wall, process_time() - busy


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.sentences")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--backends", default="torch,onnx,jax,nnx")
    parser.add_argument("--fast", action="store_true", help="the fast plan")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    texts = ragged_texts(given.count)
    rows = measure(
        texts, given.backends.split(","), rounds=given.rounds, plan="fast" if given.fast else "exact"
    )
    if given.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    print(
        "| | largest 1 - cos | max diff | seconds | busy seconds | texts a second | of transformers, busy |"
    )
    print("|---|---|---|---|---|---|---|")
    for r in rows:
        numbers = (
            f"{r.cosine:.1e} | {r.largest:.1e} | {r.seconds:.1f} | {r.busy:.1f} | {r.texts_per_second:.0f}"
        )
        print(f"| {r.contender} | {numbers} | {r.beside:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
