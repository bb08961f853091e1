"""The whole job by nest's pipeline, and by the reference library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nest
from nest.bench._task import MESSAGE
from nest.bench._work import Work
from nest.registry import Entry
from nest.tasks import _settings
from nest.tasks.text import TextTokenizer
from nest.verify.speech import recordings_of

__all__ = ["library_task", "nest_task"]

Array = np.ndarray[Any, Any]
Done = Callable[[], Mapping[str, Any]]


def nest_task(model: Any, plan: str, file: str, work: Work) -> Done:
    """The pipeline of a loaded model, as a user calls it."""
    task, given = nest.pipeline(model, plan=plan), _read(file)
    if "samples" in given:
        return lambda: {"text": task(given["samples"]).text}
    if "texts" in given:
        texts = [str(one) for one in given["texts"]]
        return lambda: {"vectors": task(texts, batch_size=work.batch)}
    ask = task if task.template is None else task.chat
    return lambda: {"ids": ask(MESSAGE, max_tokens=int(given["count"])).tokens}


def library_task(entry: Entry, library: Any, file: str, work: Work) -> Done | None:
    """The library's own way; None where nest knows none that is compared."""
    given = _read(file)
    if work.device != "cpu":
        return None  # its pieces are compared there
    if "samples" in given:
        return _transcribed(entry, library, given["samples"])
    if "texts" in given:
        return _embedded(entry, library, [str(one) for one in given["texts"]], work.batch)
    return _generated(library, given["ids"], int(given["count"]))


def _transcribed(entry: Entry, library: Any, samples: Array) -> Done:
    """The library's features, its `generate()` under the checkpoint's rules, and the text."""
    from transformers import WhisperFeatureExtractor

    rules = _settings.generation_rules(entry)
    recordings = recordings_of(entry, rules.max_tokens)
    if recordings is None:
        raise RuntimeError(f"{entry.name} has no recordings.")
    tokenizer = _settings.tokenizer(entry, rules, local_files_only=True)
    make: Any = WhisperFeatureExtractor
    features = make(feature_size=int(entry.generics["Mels"]))
    decoding = recordings.decoding
    decoding = type(decoding)(
        decoding.prompts[:1], decoding.count, decoding.bias, decoding.first_bias, decoding.end
    )

    def job() -> Mapping[str, Any]:
        session = library.new_session()
        session.run_entry(
            "listen", [features(samples, sampling_rate=16000, return_tensors="np")["input_features"]]
        )
        return {"text": tokenizer.decode(session.greedy(decoding)).strip()}

    return job


def _generated(library: Any, ids: Array, count: int) -> Done:
    """The library's `generate()`."""
    import torch

    prompt = torch.from_numpy(ids)[None].long()

    def job() -> Mapping[str, Any]:
        made = library.model.generate(
            prompt, max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        return {"ids": made[0, prompt.shape[1] :].numpy()}

    return job


def _embedded(entry: Entry, library: Any, texts: list[str], batch: int) -> Done:
    """Texts by length, in batches padded to their longest, as the library's users do."""
    import torch

    tokenizer: TextTokenizer = _settings.text_tokenizer(entry, "sentence-embedding", local_files_only=True)

    def job() -> Mapping[str, Any]:
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        encoded = [one.ids for one in tokenizer(texts)]
        made: dict[int, Array] = {}
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            lengths = [len(encoded[row]) for row in rows]
            tokens = torch.zeros((len(rows), max(lengths)), dtype=torch.long)
            for at, row in enumerate(rows):
                tokens[at, : lengths[at]] = torch.tensor(encoded[row])
            with torch.no_grad():
                states = library.call("embed", [tokens, torch.tensor(lengths), torch.zeros_like(tokens)])
            made.update(zip(rows, states.numpy(), strict=True))
        return {"vectors": np.stack([made[row] for row in range(len(texts))])}

    return job


def _read(file: str) -> dict[str, Any]:
    with np.load(Path(file)) as stored:
        return dict(stored)
