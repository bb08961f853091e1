"""One repository's folder in the Hub client's cache, laid out as the client lays it out.

    models--OWNER--NAME/snapshots/COMMIT/FILE -> ../../blobs/ETAG
    models--OWNER--NAME/blobs/KEY.incomplete        what a broken transfer left, continued by the next
    .locks/models--OWNER--NAME/KEY.lock

Read and written here, because a warm load may not wait for the client's import, and because the client starts
a broken transfer anew and stores what came before anything has compared it with a pin.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import AbstractContextManager
from pathlib import Path

__all__ = ["RepoCache"]

_TRUE = ("1", "ON", "YES", "TRUE")
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class RepoCache:
    """The files of `repo` at the commit `revision`, in the cache folder `root`."""

    def __init__(self, root: Path, repo: str, revision: str) -> None:
        self.root = root
        self._folder_name = f"models--{repo.replace('/', '--')}"
        self.folder = root / self._folder_name
        self.snapshot = self.folder / "snapshots" / revision
        self._revision = revision

    def find(self, name: str) -> Path | None:
        """The file, if it is there; not compared with anything."""
        path = self.snapshot / name
        try:
            return path if path.is_file() else None
        except PermissionError:
            return None

    def key(self, name: str, sha256: str | None) -> str:
        """What a transfer of the file is named by: its content where that is known, else where it is from."""
        return sha256 or hashlib.sha256(f"{self._revision}/{name}".encode()).hexdigest()

    def partial(self, key: str) -> Path:
        """Where a transfer collects what has come."""
        return self.blob(f"{key}.incomplete")

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Held while a file is transferred: the client's own lock for files that it knows by their sha256."""
        from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

        path = self.lock_file(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        return WeakFileLock(path)

    def lock_file(self, key: str) -> Path:
        """What is locked meanwhile."""
        return self.root / ".locks" / self._folder_name / f"{key}.lock"

    def blob(self, name: str) -> Path:
        """Where content that is named so lies."""
        return self.folder / "blobs" / name

    def place(self, content: Path, name: str, blob_name: str) -> Path:
        """Move verified content to its blob, and let the snapshot's file point to it.

        Where links cannot be made, the snapshot's file is the content itself, as the client has it there.
        """
        pointer = self.snapshot / name
        pointer.parent.mkdir(parents=True, exist_ok=True)
        blob = self.blob(blob_name)
        content.replace(blob)
        if not _links_wanted() or not _link(blob, pointer):
            blob.replace(pointer)
        return pointer


def _links_wanted() -> bool:
    return os.environ.get("HF_HUB_DISABLE_SYMLINKS", "").upper() not in _TRUE


def _link(blob: Path, pointer: Path) -> bool:
    """Make `pointer` a relative link to `blob`, in one step; False where the system has no links."""
    target = os.path.relpath(blob, pointer.parent)
    if pointer.is_symlink() and str(pointer.readlink()) == target:
        return True
    new = pointer.with_name(f".{pointer.name}.{os.getpid()}.link")
    try:
        new.unlink(missing_ok=True)
        new.symlink_to(target)
    except NotImplementedError:
        return False
    except OSError as error:
        if error.errno in _NO_LINKS or os.name == "nt":
            return False
        raise
    try:
        new.replace(pointer)
    except OSError:  # a folder has its name
        new.unlink(missing_ok=True)
        raise
    return True
