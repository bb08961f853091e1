"""Real inputs of speech models: the recordings that ship with nest, and the prompts and rules of transcription."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nest.registry import Entry
from nest.registry.samples import shipped
from nest.tasks._settings import generation_rules, mel_settings
from nest.tasks.audio import load as load_audio
from nest.tasks.mel import log_mel
from nest.tasks.rules import bias, first_bias, prompt_ids
from nest.verify.tokens import Decoding

__all__ = ["Recordings", "recordings_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Recordings:
    """The first window of each recording, [rows, Mels, Frames], and how they are decoded."""

    names: list[str]
    mel: Array
    decoding: Decoding


def recordings_of(entry: Entry, count: int) -> Recordings | None:
    """The recordings of an entry whose task is transcription; None for others.

    Args:
        count: tokens to decode.
    """
    task = entry.manifest.task
    if task is None or task.kind != "transcription":
        return None
    settings, rules = mel_settings(entry), generation_rules(entry)
    files = _files(entry)
    windows = [load_audio(f, target=settings.rate)[: settings.samples] for f in files]
    mel = np.concatenate([log_mel(w, settings) for w in windows])
    vocabulary = int(entry.generics["Vocab"])
    prompt = list(prompt_ids(rules, "en"))
    always, first = bias(rules, vocabulary), first_bias(rules, vocabulary)
    decoding = Decoding([prompt] * len(files), count, always, first, rules.end)
    return Recordings([f.stem for f in files], mel, decoding)


def _files(entry: Entry) -> list[Path]:
    """The samples of the entry, and what lies beside those that ship with nest."""
    named = [shipped(entry.directory, s.audio) for s in entry.samples if s.audio]
    first = [f for f in named if f is not None]
    return list(dict.fromkeys(f for sample in first for f in [sample, *sorted(sample.parent.glob("*.wav"))]))
