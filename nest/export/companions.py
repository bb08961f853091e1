"""The files beside the weights that make the reference library open a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nest.errors import NestError
from nest.export.families import whisper
from nest.export.folder import Staged
from nest.export.portable import Portable
from nest.registry import Entry
from nest.weights import fetch

__all__ = ["pinned_file", "write_companions"]

Json = dict[str, Any]
_TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64"}


def write_companions(folder: Staged, model: Portable, entry: Entry) -> None:
    """Write config.json and its like, and the tokenizer, as the publisher has them where those files are here.

    Where the model has other sizes than the checkpoint, its own go before the publisher's. For a family that is not
    known here, only what the publisher has is written.
    """
    generics = {n: g.value for n, g in model.program.root.generics.items()}
    resized = any(entry.generics.get(n) != v for n, v in generics.items() if n != "T" and n in entry.generics)
    family = _FAMILIES.get(entry.manifest.model.family)
    made = {} if family is None else family(entry, generics)
    for name in ("config.json", "generation_config.json", "preprocessor_config.json"):
        own, published = made.get(name, {}), _published(entry, name)
        if content := {**published, **own} if resized else {**own, **published}:
            if name == "config.json":
                content.pop("dtype", None)
                content["torch_dtype"] = _TYPES[_dtype(model)]  # which every version of the library reads
            folder.write(name, json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
    if entry.manifest.tokenizer and (path := pinned_file(entry, entry.manifest.tokenizer.file)) is not None:
        folder.write(Path(entry.manifest.tokenizer.file).name, path.read_bytes())


def pinned_file(entry: Entry, name: str) -> Path | None:
    """One of the entry's pinned files where it is on this machine; None where it is not, or not as it was pinned."""
    if entry.manifest.weights is None or all(name != spec.name for spec in entry.manifest.weights.files):
        return None
    try:
        return fetch(entry, [name], local_files_only=True, progress=False).files.get(name)
    except NestError:
        return None


def _published(entry: Entry, name: str) -> Json:
    path = pinned_file(entry, name)
    content: Json = {} if path is None else json.loads(path.read_bytes())
    return content


def _dtype(model: Portable) -> str:
    """The element type of the most weights."""
    kinds: dict[str, int] = {}
    for array, spec in zip(model.arrays.values(), model.specs.values(), strict=True):
        kinds[spec.dtype] = kinds.get(spec.dtype, 0) + array.size
    return max(kinds, key=lambda name: kinds[name])


def _whisper(entry: Entry, generics: Mapping[str, Any]) -> dict[str, Json]:
    generation, preprocess = entry.manifest.generation, entry.manifest.preprocess
    files = {"config.json": whisper.config(generics, generation)}
    if whisper.holds(generation, generics["Vocab"]):
        files["generation_config.json"] = whisper.generation_config(generics, generation)
    if preprocess is not None and preprocess.mels == generics["Mels"]:
        files["preprocessor_config.json"] = whisper.preprocessor_config(preprocess)
    return files


_FAMILIES: dict[str, Callable[[Entry, Mapping[str, Any]], dict[str, Json]]] = {"whisper": _whisper}
