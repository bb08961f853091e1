"""Files that appear whole or not at all, and paths as people write them."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from nest.errors import ConfigError

__all__ = ["atomic", "forget_oldest", "user_path"]


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its name only when the block ends without an error.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def forget_oldest(paths: Iterable[Path], most: int, *, in_use: float = -math.inf) -> None:
    """Delete the files that were touched longest ago, where all are more than `most` bytes.

    Args:
        in_use: seconds for which a file that was touched may be open in a process that found it, and stays.
    """
    found: list[tuple[float, int, Path]] = []
    for path in paths:
        with contextlib.suppress(OSError):  # it is gone
            facts = path.stat()
            found.append((facts.st_mtime, facts.st_size, path))
    total = 0
    for used, size, path in sorted(found, reverse=True):
        total += size
        if total > most and time.time() - used > in_use:
            path.unlink(missing_ok=True)


def user_path(given: str | os.PathLike[str], what: str) -> Path:
    """A path as a person wrote it, with `~` filled in.

    Raises:
        ConfigError: it begins with the home of a user who is not known; `what` says where it is from.
    """
    try:
        return Path(given).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{what} is '{os.fspath(given)}': there is no home of that name.") from error
