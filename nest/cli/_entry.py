"""What the commands say of an entry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nest.errors import InputError
from nest.registry import Entry, FileSpec, Sample
from nest.registry.samples import shipped

__all__ = ["required_files", "sample_file", "task_of", "total_size", "weights_size"]


def task_of(entry: Entry) -> str | None:
    """The kind of its task, or None."""
    return entry.manifest.task.kind if entry.manifest.task else None


def required_files(entry: Entry) -> list[FileSpec]:
    """The files that a load needs."""
    weights = entry.manifest.weights
    return [spec for spec in weights.files if spec.required] if weights else []


def total_size(files: Iterable[FileSpec]) -> int | None:
    """Bytes of all of them, or None where one is not known."""
    sizes = [spec.size for spec in files]
    known = [size for size in sizes if size is not None]
    return sum(known) if sizes and len(known) == len(sizes) else None


def weights_size(entry: Entry) -> int | None:
    """Bytes of what a load needs, as published."""
    return total_size(required_files(entry))


def sample_file(entry: Entry, sample: Sample) -> Path:
    """The recording or picture of a sample: in the entry's folder, or one that ships with nest.

    Raises:
        InputError: the sample has none, or it is not there.
    """
    name = sample.audio or sample.image
    if name is None:
        raise InputError(f"The sample of '{entry.name}' names no file: give one of your own.")
    found = shipped(entry.directory, name)
    if found is not None:
        return found
    raise InputError(
        f"The sample of '{entry.name}' is '{name}', which does not come with nest: give a FILE of your own."
    )
