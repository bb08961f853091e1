"""Reading a file of an entry, which may be anybody's: a plain file, of a size that a person writes."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

__all__ = ["entry_text"]

_MOST_BYTES = 32_000_000


def entry_text(file: Path) -> str:
    """The file's text.

    Raises:
        OSError: it cannot be read, is a pipe or a device, whose reading might never end, or is far too long.
        UnicodeDecodeError: it is not UTF-8.
    """
    status = file.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "It is no plain file")
    if stat.S_ISREG(status.st_mode) and status.st_size > _MOST_BYTES:
        raise OSError(errno.EFBIG, f"It has {status.st_size} bytes; at most {_MOST_BYTES} are read")
    return file.read_text(encoding="utf-8")
