"""Who takes part in `nest.bench.whisper_cpu`: each gives a job, from a window's mel to its ids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nest.bench._turns import Job, serve
from nest.registry import Entry, find
from nest.verify.speech import Recordings, recordings_of

__all__ = ["CONTENDERS", "Work"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Work:
    """What everyone does: from a window of log-mel frames to its ids, greedy, under the checkpoint's own rules."""

    entry: Entry
    mel: Array
    recordings: Recordings
    threads: int
    ctranslate2: Path | None

    @property
    def prompt(self) -> list[int]:
        return self.recordings.decoding.prompts[0]

    @property
    def limit(self) -> int:
        return self.recordings.decoding.count

    @property
    def rules(self) -> Any:
        return self.recordings.decoding


def _work(threads: int, ctranslate2: str) -> Work:
    entry = find("whisper-tiny.en")
    recordings = recordings_of(entry, 224)
    if recordings is None:
        raise RuntimeError(f"{entry.name} has no recordings.")
    mel = recordings.mel[recordings.names.index("jfk")][None]
    return Work(entry, mel, recordings, threads, Path(ctranslate2) if ctranslate2 else None)


def _nest(backend: str, plan: str, work: Work, quantize: str | None = None) -> Job:
    import nest

    options: dict[str, Any] = {"threads": work.threads} if backend == "onnx" else {}
    model = nest.load(work.entry, backend=backend, quantize=quantize, local_files_only=True, **options)
    session = model.new_session(**({} if plan == "exact" else {"plan": plan}))
    given = {
        "end": np.int32(work.rules.end),
        "bias": session.constant("bias", lambda: work.rules.bias),
        "first_bias": session.constant("first_bias", lambda: work.rules.first_bias),
    }
    prompt, out = np.array([work.prompt], np.int32), np.zeros((1, work.limit), np.int32)

    def job() -> Sequence[int]:
        ids, counts, _ = session.hear(work.mel, prompt, out, **given)
        tokens: list[int] = session.numpy(ids)[0, : int(session.numpy(counts)[0])].tolist()
        return tokens

    return job


def _ctranslate2(compute: str, work: Work) -> Job:
    import ctranslate2

    if work.ctranslate2 is None:
        raise RuntimeError("--ctranslate2 names no folder of a converted model.")
    model = ctranslate2.models.Whisper(
        str(work.ctranslate2), device="cpu", compute_type=compute, intra_threads=work.threads
    )
    suppressed = np.flatnonzero(np.isinf(work.rules.bias)).tolist()

    def job() -> Sequence[int]:
        features = ctranslate2.StorageView.from_array(work.mel)
        (result,) = model.generate(
            features, [work.prompt], beam_size=1, max_length=work.limit, suppress_tokens=suppressed
        )
        ids: list[int] = result.sequences_ids[0]
        return ids[: ids.index(work.rules.end)] if work.rules.end in ids else ids

    return job


def _library(work: Work) -> Any:
    import torch

    from nest.bench.whisper_parity import Case, arrays_of, reference_model

    torch.set_num_threads(work.threads)
    return reference_model(work.entry, arrays_of(Case(work.entry.name, "real", "audio")))


def _transformers_loop(work: Work) -> Job:
    """Written by hand: the encoder once, then the decoder a token at a time with the library's caches."""
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    model, mel = _library(work), torch.from_numpy(work.mel)
    always, first = torch.from_numpy(work.rules.bias), torch.from_numpy(work.rules.first_bias)

    @torch.no_grad()
    def job() -> Sequence[int]:
        states = model.model.encoder(mel)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        given, tokens = torch.tensor([work.prompt]), list[int]()
        while len(tokens) < work.limit:
            decoded = model.model.decoder(
                input_ids=given,
                encoder_hidden_states=states.last_hidden_state,
                past_key_values=cache,
                use_cache=True,
            )
            logits = model.proj_out(decoded.last_hidden_state[:, -1]) + always
            given = (logits if tokens else logits + first).argmax(-1, keepdim=True)
            if int(given) == work.rules.end:
                break
            tokens.append(int(given))
        return tokens

    return job


def _transformers_generate(work: Work) -> Job:
    from nest.verify.library.whisper import WhisperSession
    from nest.verify.tokens import Decoding

    session = WhisperSession(_library(work), ())
    rules = work.rules
    decoding = Decoding([work.prompt], work.limit, rules.bias, rules.first_bias, rules.end)

    def job() -> Sequence[int]:
        session.run_entry("listen", [work.mel])
        return session.greedy(decoding)

    return job


CONTENDERS: dict[str, Callable[[Work], Job]] = {
    "CTranslate2": partial(_ctranslate2, "float32"),
    "CTranslate2, int8": partial(_ctranslate2, "int8"),
    "nest onnx, exact": partial(_nest, "onnx", "exact"),
    "nest onnx, fast": partial(_nest, "onnx", "fast"),
    "nest onnx, fast, int8": partial(_nest, "onnx", "fast", quantize="int8"),
    "transformers, cached loop": _transformers_loop,
    "transformers, generate()": _transformers_generate,
    "nest torch, exact": partial(_nest, "torch", "exact"),
    "nest torch, fast": partial(_nest, "torch", "fast"),
    "nest jax, exact": partial(_nest, "jax", "exact"),
    "nest jax, fast": partial(_nest, "jax", "fast"),
}


def _main(name: str, threads: str, ctranslate2: str) -> None:
    serve(lambda: CONTENDERS[name](_work(int(threads), ctranslate2)), int(threads))


if __name__ == "__main__":
    _main(*sys.argv[1:])
