"""The whole job of an entry as a user has it: samples to text, a message to new tokens, sentences to vectors.

The pieces of `nest.bench._work` begin and end with tensors, which peers do not take. What all take is written once, to
a file of arrays; the entry's own files lie beside it, under the names that libraries look for.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import nest
from nest.bench._work import Kind, Work
from nest.errors import NestError
from nest.registry import Entry
from nest.registry.samples import shipped
from nest.tasks import _text_settings
from nest.tasks.audio import load as load_audio
from nest.tasks.voice import RATE
from nest.weights import fetch

__all__ = ["MESSAGE", "Task", "ragged_texts", "task_of"]

MESSAGE = "Tell me a story about a fox."

_ODD = (
    "",
    " ",
    "naïve café",
    "一只猫在睡觉。",
    "🐈🐈🐈",
    "قطة نائمة",
    "a\u0000b\u200bc",
    "x" * 300,
    "[SEP] [MASK]",
)


@dataclass(frozen=True)
class Task:
    """A job in a folder: the file of its arrays, the entry's files, and facts of the checkpoint.

    `folder` holds `nest` as well, for a Python that has none.
    """

    file: Path
    folder: Path
    facts: dict[str, Any]


@contextmanager
def task_of(entry: Entry, kind: Kind, work: Work) -> Iterator[Task | None]:
    """The whole job with an entry's real weights; None where it has none, or the files are not here."""
    arrays = _arrays(entry, kind, work) if work.weights == "real" else None
    if arrays is None:
        yield None
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "task.npz", **arrays)
        (folder / "nest").symlink_to(Path(nest.__file__).parent, target_is_directory=True)
        for published, path in _files(entry):
            _placed(path, folder / "files" / published)
        yield Task(folder / "task.npz", folder / "files", _facts(entry))


def _arrays(entry: Entry, kind: Kind, work: Work) -> dict[str, Any] | None:
    manifest = entry.manifest.task
    named = None if manifest is None else manifest.kind
    try:
        if named == "transcription" and work.batch == 1:
            return _speech(entry)
        if named == "text-generation" and work.batch == 1:
            return {"ids": np.array(_prompt(entry), np.int32), "count": np.int32(work.new_tokens)}
        if named == "sentence-embedding":
            return {"texts": np.array(ragged_texts(work.texts, odd=False))}
    except NestError:
        return None  # a file that is not here
    return None


def _speech(entry: Entry) -> dict[str, Any] | None:
    files = [shipped(entry.directory, sample.audio) for sample in entry.samples if sample.audio]
    found = next((file for file in files if file is not None), None)
    return None if found is None else {"samples": load_audio(found, target=RATE)}


def _prompt(entry: Entry) -> list[int]:
    tokenizer = _text_settings.decoder_tokenizer(entry, local_files_only=True)
    template = _text_settings.chat_template(entry, local_files_only=True)
    if template is None:
        return tokenizer.encode(MESSAGE)
    text = template.render([{"role": "user", "content": MESSAGE}])
    return tokenizer.encode(text, special=False)


def _files(entry: Entry) -> Iterator[tuple[str, Path]]:
    """What is here of the entry's files; those that nest does not need may be missing."""
    pinned = entry.manifest.weights.files if entry.manifest.weights else []
    for file in pinned:
        try:
            yield from fetch(entry, [file.name], local_files_only=True).files.items()
        except NestError:
            continue


def _facts(entry: Entry) -> dict[str, Any]:
    tokenizer = entry.manifest.tokenizer
    return {
        "pooling": str(entry.generics.get("pooling", "mean")),
        "normalize": bool(entry.generics.get("normalize", True)),
        "max_tokens": 512 if tokenizer is None else tokenizer.max_tokens or 512,
    }


def _placed(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.symlink_to(file)
    except OSError:  # a system on which links need rights
        shutil.copyfile(file, place)


def ragged_texts(count: int, seed: int = 0, *, odd: bool = True) -> list[str]:
    """Texts of 1 to 200 words, shuffled, and some odd ones; from English that comes with Python."""
    from pydoc_data.topics import topics

    words = " ".join(topics.values()).split()
    rng = random.Random(seed)
    found = list(_ODD) if odd else []
    while len(found) < count:
        length = int(np.exp(rng.uniform(0, np.log(200))))
        start = rng.randrange(len(words) - length)
        found.append(" ".join(words[start : start + length]))
    rng.shuffle(found)
    return found[:count]
