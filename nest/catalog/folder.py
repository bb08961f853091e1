"""The folder that a catalog is written to: its parts, what each was made from, and nothing that is not a build's."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nest.errors import InputError

__all__ = ["STAMP", "Folder"]

STAMP = ".catalog.json"
"""Each part with its digest and files: what a second build need not make again, and what it may delete."""


@dataclass(frozen=True)
class _Part:
    digest: str
    files: tuple[str, ...]


class Folder:
    """A catalog's folder. A part is a folder of it, or `.`, the files at its top.

    The stamp is there from the beginning and is kept after each part, so that a build that was stopped is gone on with.

    Raises:
        InputError: the folder is a file, or holds files that no build wrote.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = self._read()

    def has(self, part: str, digest: str) -> bool:
        """Whether a part was made from this already, and all of its files are there."""
        known = self._parts.get(part)
        return (
            known is not None
            and known.digest == digest
            and all((self.path / part / name).is_file() for name in known.files)
        )

    def put(self, part: str, digest: str, files: Mapping[str, bytes | Path]) -> None:
        """Make a part hold these files and no others of an earlier build."""
        self._save()
        for name, content in files.items():
            _write(self.path / part / name, content)
        if part == ".":
            stale = [self.path / name for name in set(self._files_of(part)) - set(files)]
        else:
            stale = [file for file in (self.path / part).rglob("*") if file.is_file()]
            stale = [file for file in stale if file.relative_to(self.path / part).as_posix() not in files]
        for file in stale:
            file.unlink(missing_ok=True)
        self._parts[part] = _Part(digest, tuple(files))
        self._save()

    def keep(self, parts: Iterable[str]) -> list[str]:
        """Remove all other parts that a build made, and name them."""
        gone = sorted(set(self._parts) - set(parts))
        for part in gone:
            if not (self.path / part).is_symlink():
                shutil.rmtree(self.path / part, ignore_errors=True)
            del self._parts[part]
        self._save()
        return gone

    def _files_of(self, part: str) -> tuple[str, ...]:
        return self._parts[part].files if part in self._parts else ()

    def _read(self) -> dict[str, _Part]:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; the catalog is written to a folder of its own.")
        if not self.path.exists() or not any(self.path.iterdir()):
            return {}
        stamp = self.path / STAMP
        if not stamp.is_file():
            raise InputError(
                f"{self.path} is not empty, and no catalog was written there: it has no {STAMP}. Give an empty folder "
                f"or a new one; a build deletes what it did not write."
            )
        try:
            return _parts(json.loads(stamp.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"{stamp} cannot be read as what a build wrote. Delete {self.path}, which a build makes anew, or give "
                f"another folder."
            ) from None

    def _save(self) -> None:
        parts = {name: {"digest": p.digest, "files": p.files} for name, p in self._parts.items()}
        _write(self.path / STAMP, json.dumps(parts, indent=0).encode())


def _parts(stamp: Mapping[str, Mapping[str, object]]) -> dict[str, _Part]:
    """The parts of a stamp. Names become paths that may be deleted: what leads out of the folder is no part."""
    found = {}
    for name, facts in stamp.items():
        files = facts["files"]
        if not isinstance(files, list):
            raise TypeError(f"'{name}' has no list of files")
        inside = [
            str(file) for file in files if ".." not in Path(file).parts and not Path(file).is_absolute()
        ]
        if name == "." or (Path(name).name == name and name != ".."):
            found[name] = _Part(str(facts["digest"]), tuple(inside))
    return found


def _write(file: Path, content: bytes | Path) -> None:
    data = content.read_bytes() if isinstance(content, Path) else content
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_file() and file.read_bytes() == data:
        return  # a file that did not change keeps its time: what reads the folder next sees no change either
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
