"""What the tasks on pictures need from an entry's manifest and from its labels' file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nest.errors import ManifestError, WeightsError
from nest.registry import Entry
from nest.tasks.captions import CaptionTokenizer
from nest.tasks.pixels import PixelSettings

__all__ = ["caption_tokenizer", "labels", "pixel_settings"]


def pixel_settings(entry: Entry) -> PixelSettings:
    """How `entry` wants its pictures, from [preprocess].

    Raises:
        ManifestError: a value is missing.
    """
    table = entry.manifest.preprocess
    if table is None or table.resize is None or table.resample is None:
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: a task on pictures needs 'preprocess.resize' and "
            f"'preprocess.resample', and they are not there. Add them as the checkpoint's own preprocessor has them."
        )
    resize = table.resize if isinstance(table.resize, int) else (table.resize[0], table.resize[1])
    return PixelSettings(
        resize=resize,
        resample=table.resample,
        crop=(table.crop[0], table.crop[1]) if table.crop else None,
        rescale=table.rescale or PixelSettings.rescale,
        mean=tuple(table.mean) if table.mean else PixelSettings.mean,
        std=tuple(table.std) if table.std else PixelSettings.std,
    )


def caption_tokenizer(entry: Entry, **fetch_options: Any) -> CaptionTokenizer:
    """Fetch and read the file of [tokenizer], with what `nest.weights.fetch` takes as options.

    Raises:
        ManifestError: the entry names none, or not how long a text may be.
        FetchError, DigestError, WeightsError: it cannot be had, or is not what it should be.
    """
    from nest.weights import fetch

    table = entry.manifest.tokenizer
    if table is None or table.max_tokens is None:
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: the task 'image-text-matching' needs 'tokenizer.file' and "
            f"'tokenizer.max_tokens', and they are not there."
        )
    return CaptionTokenizer(
        fetch(entry, [table.file], **fetch_options).files[table.file],
        max_tokens=table.max_tokens,
        begin=table.begin,
        end=table.end,
        pad=table.pad,
        canonical=table.canonical,
    )


def labels(entry: Entry, count: int, **fetch_options: Any) -> list[str]:
    """The names of the `count` classes of an entry's model, in order, from the file of [labels].

    Raises:
        ManifestError: the entry names none.
        FetchError, DigestError, WeightsError: the file cannot be had, or does not name the classes.
    """
    from nest.weights import fetch

    table = entry.manifest.labels
    if table is None:
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: the task 'image-classification' needs 'labels.file', the pinned file "
            f"that names the classes, and it is not there."
        )
    path = fetch(entry, [table.file], **fetch_options).files[table.file]
    names = _names(path)
    if sorted(names) != list(range(count)):
        raise WeightsError(
            f"{path}: 'id2label' names {len(names)} classes, and the model of '{entry.name}' has {count}, from 0 to "
            f"{count - 1}."
        )
    return [names[index] for index in range(count)]


def _names(path: Path) -> dict[int, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["id2label"]
        return {int(index): str(name) for index, name in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(
            f"{path}: expected JSON with the object 'id2label', from a class's number to its name; it cannot be read "
            f"as that ({type(error).__name__}: {error})."
        ) from error
