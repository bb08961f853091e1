"""A file of digests for files that no entry pins: recorded when one first comes, compared ever after.

One is kept in the cache. A team commits its own (`--lock FILE`, `lock=`, or `NEST_LOCK`), and all of them have the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from nest.errors import ConfigError
from nest.registry import FileSpec, Weights
from nest.weights._files import atomic, user_path

__all__ = ["LockFile"]

_VERSION = 1


class LockFile:
    """Digests by repository, commit and file.

    Args:
        path: the file; it need not be there.
        named: somebody chose it, so that what it holds was meant, and it must be writable.
        mutex: held while it is written, by processes that record at once.
    """

    def __init__(self, path: Path, *, named: bool, mutex: Path) -> None:
        self.path = path
        self.named = named
        self._mutex = mutex

    @classmethod
    def choose(cls, given: str | os.PathLike[str] | None, root: Path) -> LockFile:
        """The file that is given or that `NEST_LOCK` names, else the one of the cache at `root`."""
        chosen = given or os.environ.get("NEST_LOCK")
        path = user_path(chosen, "The lock file").absolute() if chosen else root / "lock.json"
        # In the cache, where it disturbs nobody's repository.
        mutex = root / "locks" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.lock"
        return cls(path, named=bool(chosen), mutex=mutex)

    def pin(self, weights: Weights, spec: FileSpec) -> FileSpec:
        """`spec` with the recorded size and digest, where the entry pins no digest and one is recorded.

        Raises:
            ConfigError: the file cannot be read as a lock file.
        """
        if spec.sha256 is not None:
            return spec
        known = self._read().get(_key(weights, spec))
        return spec if known is None else spec.model_copy(update=known)

    def record(self, weights: Weights, spec: FileSpec, *, sha256: str, size: int) -> bool:
        """Write the digest of a file that came for the first time; False where it cannot be written.

        Raises:
            ConfigError: a named file cannot be written.
        """
        from filelock import FileLock

        try:
            self._mutex.parent.mkdir(parents=True, exist_ok=True)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._mutex):
                files = self._read()
                files.setdefault(_key(weights, spec), {"sha256": sha256, "size": size})
                text = json.dumps({"version": _VERSION, "files": files}, indent=2, sort_keys=True) + "\n"
                with atomic(self.path) as file:
                    file.write(text.encode())
        except OSError as error:
            if self.named:
                raise ConfigError(
                    f"The lock file {self.path} cannot be written: {error.strerror or error}. '{spec.name}' has "
                    f"the sha256 {sha256}."
                ) from error
            return False
        return True

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_bytes())
            files = data["files"]
            right = type(data["version"]) is int and data["version"] == _VERSION and type(files) is dict
            if not right or not all(_valid(item) for item in files.values()):
                raise ValueError("it is of another form or version")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise ConfigError(
                f"The lock file {self.path} cannot be read: {error}. Expected what nest pull --lock writes: "
                f"version {_VERSION}, and 'files' with a sha256 and a size each."
            ) from error
        return dict(files)


def _key(weights: Weights, spec: FileSpec) -> str:
    return f"{weights.repo}@{weights.revision}/{spec.name}"


def _valid(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and set(item) == {"sha256", "size"}
        and isinstance(item["sha256"], str)
        and bool(re.fullmatch("[0-9a-f]{64}", item["sha256"]))
        and type(item["size"]) is int
        and item["size"] >= 0
    )
