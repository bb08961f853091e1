"""Read what the tasks need from an entry's manifest: the one place that knows the names of its tables."""

from __future__ import annotations

from typing import Any, TypeVar

from nest.errors import ManifestError
from nest.registry import Entry
from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.text import TextTokenizer
from nest.tasks.tokens import Tokenizer

_Value = TypeVar("_Value")


def generation_rules(entry: Entry) -> GenerationRules:
    """Return the token ids and limits of `entry`, from [generation] and the generic `MaxTokens`.

    Raises:
        ManifestError: a value is missing.
    """
    table = present(entry, entry.manifest.generation, "generation")
    generic = entry.generics.get("MaxTokens")
    positions = present(entry, generic if isinstance(generic, int) else None, "generics.MaxTokens")
    tasks = {"transcribe": table.transcribe, "translate": table.translate}
    return GenerationRules(
        start=present(entry, table.start_of_transcript, "generation.start_of_transcript"),
        end=table.end_of_text,
        prompt=tuple(table.prompt),
        no_timestamps=present(entry, table.no_timestamps, "generation.no_timestamps"),
        first_timestamp=present(entry, table.first_timestamp, "generation.first_timestamp"),
        positions=positions,
        max_tokens=table.max_tokens or positions // 2,
        start_of_previous=table.start_of_previous,
        no_speech=table.no_speech,
        suppress=tuple(table.suppress),
        begin_suppress=tuple(table.begin_suppress),
        languages=dict(table.languages),
        tasks={name: token for name, token in tasks.items() if token is not None},
        alignment_heads=tuple((layer, head) for layer, head in table.alignment_heads),
    )


def mel_settings(entry: Entry) -> MelSettings:
    """Return how `entry` wants its spectrogram, from [preprocess].

    Raises:
        ManifestError: a value is missing.
    """
    table = present(entry, entry.manifest.preprocess, "preprocess")
    return MelSettings(
        bins=present(entry, table.mels, "preprocess.mels"),
        rate=present(entry, table.rate, "preprocess.rate"),
        n_fft=present(entry, table.n_fft, "preprocess.n_fft"),
        hop=present(entry, table.hop, "preprocess.hop"),
        window_seconds=present(entry, table.window_seconds, "preprocess.window_seconds"),
    )


def tokenizer(entry: Entry, rules: GenerationRules, **fetch_options: Any) -> Tokenizer:
    """Fetch and read the file of [tokenizer], with what `nest.weights.fetch` takes as options.

    Raises:
        ManifestError: the entry names none.
        FetchError, DigestError, WeightsError: it cannot be had, or is not what it should be.
    """
    from nest.weights import fetch

    name = present(entry, entry.manifest.tokenizer, "tokenizer").file
    path = fetch(entry, [name], **fetch_options).files[name]
    return Tokenizer(path, end=rules.end, first_timestamp=rules.first_timestamp)


def text_tokenizer(entry: Entry, task: str, *, mask: bool = False, **fetch_options: Any) -> TextTokenizer:
    """Fetch and read the file of [tokenizer] of a text encoder; with `mask`, one that has a mask token.

    Raises:
        ManifestError: a value is missing, or the vocabulary has no such mask token.
        FetchError, DigestError, WeightsError: it cannot be had, or is not what it should be.
    """
    from nest.weights import fetch

    table = present(entry, entry.manifest.tokenizer, "tokenizer", task)
    most = present(entry, table.max_tokens, "tokenizer.max_tokens", task)
    spelled = present(entry, table.mask, "tokenizer.mask", task) if mask else None
    path = fetch(entry, [table.file], **fetch_options).files[table.file]
    return TextTokenizer(path, max_tokens=most, mask=spelled)


def present(entry: Entry, value: _Value | None, key: str, task: str = "transcription") -> _Value:
    if value is None:
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: the task '{task}' needs '{key}', and it is not there. "
            "Add it as the checkpoint's own configuration has it."
        )
    return value
