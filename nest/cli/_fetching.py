"""Say what is about to be fetched, before it is."""

from __future__ import annotations

import sys

from nest.cli._entry import required_files, weights_size
from nest.cli._format import file_size
from nest.errors import NestError
from nest.registry import Entry
from nest.weights import fetch

__all__ = ["announce_fetch"]


def announce_fetch(entry: Entry) -> None:
    """One line on standard error where files are missing: how many, how large, under which licence."""
    if entry.manifest.weights is None or _is_here(entry):
        return
    names = " and ".join(spec.name for spec in required_files(entry))
    sys.stderr.write(
        f"Fetching {entry.name}: {names}, {file_size(weights_size(entry))}, licence {entry.manifest.model.license}\n"
    )
    sys.stderr.flush()


def _is_here(entry: Entry) -> bool:
    try:
        fetch(entry, local_files_only=True, progress=False)
    except NestError:
        return False  # not here, or damaged: the fetch that follows says which
    return True
