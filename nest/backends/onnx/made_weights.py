"""What a plan makes of a checkpoint's weights, kept on disk: heads by columns and in 8 bits, packed projections.

Making them takes longer than all else of a warm load. They are found by what they are made of: the files, which extents
of them, and how; a file that has changed since has another time or size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from nest.backends.onnx.graph_cache import sources_digest
from nest.weights._files import atomic, forget_oldest
from nest.weights.cache import cache_root

__all__ = ["Extent", "MadeWeights", "key_of"]

Extent = tuple[int, int]
"""Offset and length in bytes."""

_KEPT_BYTES = 4 << 30
_IN_USE = 24 * 60 * 60.0
"""Seconds in which a file may be in use by a process that found it."""
_END = 16
"""Bytes at the end of a file: how long the table before them is, in decimal."""


class MadeWeights:
    """A folder of weights. One that cannot be read or written is an empty one.

    Args:
        folder: `onnx` in nest's cache if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = cache_root() / "onnx" if folder is None else folder

    def get(self, key: str) -> tuple[Path, dict[str, Extent]] | None:
        """A file and where in it each parameter is; None where there is none, or one that was cut off."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                end = file.seek(-_END, 2)
                length = int(file.read(_END))
                file.seek(end - length)
                table = json.loads(file.read(length))
            if table["size"] != end - length:
                return None
            extents = {name: (int(at), int(size)) for name, (at, size) in table["extents"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        with contextlib.suppress(OSError):
            path.touch()  # used last, for `prune`
        return path.resolve(), extents

    def put(
        self, key: str, write: Callable[[BinaryIO], Mapping[str, Extent]]
    ) -> tuple[Path, dict[str, Extent]] | None:
        """Keep what a function writes, and find it again; None where the folder cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic(self._path(key)) as file:
                extents = write(file)
                table = json.dumps({"size": file.tell(), "extents": dict(extents)}).encode()
                file.write(table + b"%*d" % (_END, len(table)))
            self.prune()
        except OSError:
            return None
        return self.get(key)

    def prune(self, most: int = _KEPT_BYTES) -> None:
        """Forget what was used longest ago, where it is more than `most` bytes, but for what may be in use."""
        forget_oldest(self.folder.glob("*.weights"), most, in_use=_IN_USE)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.weights"


def key_of(recipes: Mapping[str, str], sources: Iterable[tuple[Path, int, int, str]]) -> str | None:
    """What weights are found by; None where a source cannot be looked at.

    Args:
        recipes: how each parameter is made, as text.
        sources: of what: file, offset, length and name of each, in an order that recipes say.
    """
    lines = [sources_digest(), *(f"{path} = {recipe}" for path, recipe in sorted(recipes.items()))]
    try:
        for file, offset, length, name in sources:
            facts = file.stat()
            lines.append(f"{name} {file} {offset} {length} {facts.st_size} {facts.st_mtime_ns}")
    except OSError:
        return None
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
