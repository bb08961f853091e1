"""Where an entry lies, and what that says of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """An entry's folder.

    `trusted`: it is of the installed zoo, so that its definition may run. `listed`: it is found by its folder's
    name, which must then be the entry's.
    """

    folder: Path
    trusted: bool = False
    listed: bool = False
