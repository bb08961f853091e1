"""Have an entry's files before they are asked for one by one, so that one line says all that comes."""

from __future__ import annotations

import sys

from nest.registry import Entry
from nest.weights import fetch

__all__ = ["announce_fetch"]


def announce_fetch(entry: Entry) -> None:
    """Fetch what a load needs and is not here, after saying on standard error how large it is, and its licence.

    What a person should know of the files, such as that they are not the publisher's own, is said as well.
    """
    if entry.manifest.weights is not None:
        for note in fetch(entry).notes:
            sys.stderr.write(f"nest: note: {note}\n")
