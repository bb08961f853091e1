"""What speech to text needs around the graphs: tokenizer, mel filters, token ids, and a runner without nest."""

from __future__ import annotations

import io
from importlib.resources import files
from typing import Any

import numpy as np

from nest.export.families.whisper import holds
from nest.export.folder import Staged
from nest.export.portable import Portable
from nest.tasks.mel import FLOOR, RANGE, MelSettings, mel_filters
from nest.weights import fetch

__all__ = ["write_speech"]

Json = dict[str, Any]
RUNNER = "run.py"
FILTERS = "mel_filters.npy"


def write_speech(folder: Staged, model: Portable, local_files_only: bool) -> Json:
    """Write the files of a transcribing entry; what `io.json` says of them.

    A model of other sizes than the entry's checkpoint has no use for that one's tokenizer, and gets graphs alone.

    Raises:
        FetchError, DigestError, WeightsError: the tokenizer cannot be had.
    """
    entry = model.entry
    if entry is None or entry.manifest.task is None or entry.manifest.task.kind != "transcription":
        return {}
    manifest, generics = entry.manifest, {n: g.value for n, g in model.program.root.generics.items()}
    generation, preprocess, tokenizer = manifest.generation, manifest.preprocess, manifest.tokenizer
    if preprocess is None or tokenizer is None or not holds(generation, _number(generics["Vocab"])):
        return {}
    if any(generics[n] != entry.generics.get(n) for n in ("Vocab", "Mels", "Frames")):
        return {}
    settings = MelSettings(
        **{n: v for n, v in preprocess.model_dump(exclude={"mels"}).items() if v is not None},
        bins=preprocess.mels or MelSettings.bins,
    )
    path = fetch(entry, [tokenizer.file], local_files_only=local_files_only).files[tokenizer.file]
    folder.write("tokenizer.json", path.read_bytes())
    folder.write(FILTERS, _npy(mel_filters(settings)))
    folder.write(RUNNER, (files("nest.export.onnx") / "_run_speech.py").read_text(encoding="utf-8"))
    return {
        "task": "transcription",
        "tokenizer": "tokenizer.json",
        "preprocess": _preprocess(settings),
        "generation": generation.model_dump(exclude_none=True),
    }


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _preprocess(settings: MelSettings) -> Json:
    return {
        "kind": "log-mel",
        "rate": settings.rate,
        "mels": settings.bins,
        "n_fft": settings.n_fft,
        "hop": settings.hop,
        "window_seconds": settings.window_seconds,
        "filters": FILTERS,
        "floor": FLOOR,
        "range": RANGE,
    }


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
