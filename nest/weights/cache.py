"""Where nest keeps files of its own: converted weights, and records of what was verified.

Files of the Hub stay in the Hub client's own cache, shared with everything else that uses it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from nest.errors import FetchError
from nest.weights._files import user_path

__all__ = ["cache_root", "writing"]


def cache_root() -> Path:
    """`NEST_CACHE` if set, else `nest` in the platform's folder for caches."""
    if configured := os.environ.get("NEST_CACHE"):
        return user_path(configured, "NEST_CACHE").absolute()
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "nest" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "nest"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else home / ".cache") / "nest"


@contextlib.contextmanager
def writing(directory: Path, variable: str) -> Iterator[None]:
    """Turn a failed write below `directory` into an error that says what to set.

    Raises:
        FetchError: the block could not write: no permission, read-only, disk full.
    """
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename  # of a file that was to take a name, the name
        raise FetchError(
            f"The cache {directory} cannot be written: {error.strerror or error}{f' ({where})' if where else ''}. "
            f"Make room or give permission there, or set {variable} to a folder that can be written."
        ) from error
