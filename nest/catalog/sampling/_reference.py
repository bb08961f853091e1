"""What the reference library makes of an entry's samples, on the same weights, by its own generation.

Texts, tokens and vectors are transformers'. Times of words are openai-whisper's, where that is installed, for the
tokens that transformers chose: transformers' own times leave out the row in which the first token is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from nest.errors import InputError, MissingDependencyError
from nest.loading import load, program_of
from nest.registry import Entry, Sample
from nest.registry.samples import shipped
from nest.tasks._settings import generation_rules, mel_settings, tokenizer
from nest.tasks.audio import load as load_audio
from nest.tasks.mel import log_mel
from nest.tasks.rules import bias, first_bias, prompt_ids
from nest.verify.library import library_of
from nest.verify.tokens import Decoding
from nest.weights.fetch import fetch

__all__ = ["KINDS", "library_version", "references"]

References = Callable[[Sample], dict[str, Any]]


def references(entry: Entry) -> References:
    """A function that gives the reference library's outputs of a sample of `entry`, by the sample's fields.

    Raises:
        MissingDependencyError: the library is not installed.
        InputError: the entry's task is none that the library's side is written for.
    """
    if find_spec("transformers") is None or find_spec("torch") is None:
        raise MissingDependencyError(
            "The reference side of samples needs transformers and torch: pip install transformers torch, or leave it "
            "out with --no-reference."
        )
    kind = entry.manifest.task.kind if entry.manifest.task else None
    if kind not in KINDS:
        raise InputError(
            f"The reference library's side of '{kind}' is not written yet; it is for {', '.join(KINDS)}. "
            f"Leave it out with --no-reference."
        )
    return KINDS[kind](entry)


def library_version(entry: Entry) -> str:
    """The library's name and version; with what computes times of words, where it is here."""
    said = f"transformers {version('transformers')}"
    kind = entry.manifest.task.kind if entry.manifest.task else None
    timed = kind == "transcription" and find_spec("whisper") is not None
    return f"{said}; times of words openai-whisper {version('openai-whisper')}" if timed else said


def _library(entry: Entry) -> tuple[Any, dict[str, Any]]:
    """The library's model of the entry's weights in f32, and these by path."""
    model = load(entry, backend="torch")
    params = {path: tensor.detach().numpy() for path, tensor in model.state_dict().items()}
    library = library_of(entry, program_of(entry), params)
    if library is None:
        raise InputError(
            f"The reference library's side of family '{entry.manifest.model.family}' is not written."
        )
    return library, params


def _transcription(entry: Entry) -> References:
    library, params = _library(entry)
    rules, settings = generation_rules(entry), mel_settings(entry)
    names = tokenizer(entry, rules)
    vocabulary = int(entry.generics["Vocab"])

    def give(sample: Sample) -> dict[str, Any]:
        file = shipped(entry.directory, sample.audio or "")
        if file is None:
            raise InputError(f"The recording '{sample.audio}' of '{entry.name}' is not here.")
        samples = load_audio(file, target=settings.rate)
        session = library.new_session()
        session.run_entry("listen", [log_mel(samples, settings)])
        prompt = list(prompt_ids(rules, "en"))
        always, first = bias(rules, vocabulary), first_bias(rules, vocabulary)
        tokens = session.greedy(Decoding([prompt], rules.max_tokens, always, first, rules.end))
        found: dict[str, Any] = {"reference_text": names.decode(tokens).strip()}
        if rules.alignment_heads and find_spec("whisper") is not None:
            from nest.catalog.sampling._reference_words import words

            found["reference_words"] = words(entry, params, tokens, samples)
        return found

    return give


def _generation(entry: Entry) -> References:
    import torch
    from transformers import AutoTokenizer

    library, _ = _library(entry)
    names: Any = AutoTokenizer.from_pretrained(next(iter(fetch(entry).files.values())).parent)
    table = entry.manifest.generation
    ends = [table.end_of_text, *table.stop] if table else []

    def give(sample: Sample) -> dict[str, Any]:
        if sample.chat:
            message = [{"role": "user", "content": sample.prompt}]
            ids = names.apply_chat_template(message, add_generation_prompt=True)["input_ids"]
        else:
            ids = names(sample.prompt)["input_ids"]
        made = library.model.eval().generate(
            torch.tensor([ids]),
            max_new_tokens=sample.max_tokens or 64,
            do_sample=False,
            eos_token_id=ends,
            pad_token_id=ends[0],
        )
        return {"reference_text": names.decode(made[0, len(ids) :], skip_special_tokens=True)}

    return give


def _embedding(entry: Entry) -> References:
    from nest.bench.sentences import library

    embed = library(entry)

    def give(sample: Sample) -> dict[str, Any]:
        vectors = embed(sample.texts or []).astype(np.float64)
        return {"reference_matrix": [[round(float(x), 6) for x in row] for row in vectors @ vectors.T]}

    return give


KINDS: dict[str, Callable[[Entry], References]] = {
    "transcription": _transcription,
    "text-generation": _generation,
    "sentence-embedding": _embedding,
}
