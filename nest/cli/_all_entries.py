"""All entries, with what is wrong with the others in words and not as Python's warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from nest.registry import BrokenEntryWarning, Entry

__all__ = ["read_entries"]


def read_entries(read: Callable[[], list[Entry]]) -> tuple[list[Entry], list[str]]:
    """What `read` (`nest.registry.entries`) finds, and a line for each entry or folder that it leaves out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BrokenEntryWarning)
        found = read()
    return found, [str(warning.message) for warning in caught if warning.category is BrokenEntryWarning]
