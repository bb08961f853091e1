"""Files against their pinned size and sha256, hashed once for each content.

A record beside the cache says which file (path, size, time, inode) had which digest, so that a warm load does
not read 150 MB to hash them. Where any of it differs, the file is hashed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from nest.errors import DigestError
from nest.weights._files import atomic

__all__ = ["Verifier", "file_sha256"]


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Verifier:
    """Checks files, with records kept under `root`; `keep=False` reads them and writes none."""

    def __init__(self, root: Path, *, keep: bool = True) -> None:
        self._root = root / "verified"
        self._keep = keep

    def check(self, path: Path, *, name: str, sha256: str | None, size: int | None) -> None:
        """Compare a file with its pins; a pin that is None is not compared.

        Raises:
            DigestError: the file differs.
            OSError: it cannot be read.
        """
        found = path.stat().st_size
        if size is not None and found != size:
            raise DigestError(
                f"{path} is not the pinned '{name}': expected {size} bytes; it has {found}. It is not used."
            )
        if sha256 is not None and (digest := self.digest(path)) != sha256:
            raise DigestError(
                f"{path} is not the pinned '{name}': expected the sha256 {sha256}; it has {digest}. It is not used."
            )

    def digest(self, path: Path) -> str:
        """The sha256 of `path`, from its record where the file is unchanged."""
        target = path.resolve()
        state = _state(target)
        known = _read(self._record(target))
        if {key: known.get(key) for key in state} == state and isinstance(known.get("sha256"), str):
            return str(known["sha256"])
        digest = file_sha256(target)
        self._write(self._record(target), {**state, "sha256": digest})
        return digest

    def remember(self, path: Path, sha256: str) -> None:
        """Record that the file as it is now has this digest, which the caller has computed."""
        target = path.resolve()
        self._write(self._record(target), {**_state(target), "sha256": sha256})

    def forget(self, path: Path) -> None:
        """Drop the record, so that the file is hashed again."""
        with contextlib.suppress(OSError):
            self._record(path.resolve()).unlink()

    def _record(self, target: Path) -> Path:
        return self._root / f"{hashlib.sha256(str(target).encode()).hexdigest()[:32]}.json"

    def _write(self, record: Path, content: dict[str, Any]) -> None:
        if not self._keep:
            return
        # A cache that cannot be written still serves: the file is hashed again next time.
        with contextlib.suppress(OSError):
            self._root.mkdir(parents=True, exist_ok=True)
            with atomic(record) as file:
                file.write(json.dumps(content).encode())


def _state(target: Path) -> dict[str, Any]:
    stat = target.stat()
    return {"path": str(target), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino}


def _read(record: Path) -> dict[str, Any]:
    try:
        content = json.loads(record.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
