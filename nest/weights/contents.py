"""What lies in the caches: files of entries, and what is of no use any more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nest.errors import FetchError
from nest.registry import Entry, FileSpec, Weights
from nest.weights._deletion import delete, inside
from nest.weights.cache import cache_root
from nest.weights.digests import Verifier
from nest.weights.hub import hub_cache_root
from nest.weights.hub_cache import RepoCache
from nest.weights.lock import LockFile

__all__ = [
    "CachedFile",
    "Leftover",
    "cached_files",
    "leftovers",
    "remove_entry",
    "superseded",
    "unnamed_packages",
    "verify_file",
]


@dataclass(frozen=True)
class CachedFile:
    """A file of an entry on this machine, in the Hub client's cache or made from a package."""

    entry: str
    spec: FileSpec
    path: Path
    place: Literal["hub", "package"]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size


@dataclass(frozen=True)
class Leftover:
    """A file or folder that nothing needs, and why. A transfer's is deleted under the transfer's lock."""

    path: Path
    reason: str
    lock: Path | None = None

    @property
    def size(self) -> int:
        """Bytes on disk."""
        if self.path.is_dir() and not self.path.is_symlink():
            return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        return self.path.lstat().st_size

    def remove(self) -> None:
        """Delete it, unless somebody has begun to use it.

        Raises:
            FetchError: it cannot be deleted.
        """
        try:
            with nullcontext(True) if self.lock is None else _held(self.lock) as free:
                if free:
                    delete(self.path)
        except OSError as error:
            raise FetchError(f"{self.path} cannot be deleted: {error.strerror or error}.") from error


def cached_files(entry: Entry) -> list[CachedFile]:
    """The files of `entry` that are here; not compared with their pins."""
    weights = entry.manifest.weights
    if weights is None:
        return []
    hub, locked = _repo(weights), LockFile.choose(None, cache_root())
    found = []
    for spec in weights.files:
        if (path := hub.find(spec.name)) is not None:
            found.append(CachedFile(entry.name, locked.pin(weights, spec), path, "hub"))
        found += [
            CachedFile(entry.name, spec, folder / spec.name, "package")
            for folder in _package_folders(weights)
            if (folder / spec.name).is_file()
        ]
    return found


def verify_file(file: CachedFile, entry: Entry) -> bool | None:
    """Read all of the file and compare it with its pins; None where nobody has pinned it."""
    verifier = Verifier(cache_root())
    verifier.forget(file.path)
    accepted = {file.spec.sha256} | _declared(entry, file) - {None}
    if accepted == {None}:
        return None
    return verifier.digest(file.path) in accepted


def _declared(entry: Entry, file: CachedFile) -> set[str | None]:
    """Digests that the entry accepts of a file made from a package."""
    if file.place != "package" or entry.manifest.weights is None:
        return set()
    return {
        member.converted_sha256 if member.converter else member.sha256
        for mirror in entry.manifest.weights.mirror
        for member in mirror.files
        if member.replaces == file.spec.name
    }


def leftovers(entries: Iterable[Entry]) -> list[Leftover]:
    """What nobody can use: broken transfers of `entries`, and digests of files that are gone."""
    found = [left for each in _weights(entries) for left in _broken_transfers(_repo(each))]
    return list({left.path: left for left in [*found, *_stale_records()]}.values())


def superseded(entries: Iterable[Entry], known: Iterable[Entry]) -> list[Leftover]:
    """Files of packages of `entries` whose published file is here, for every one of `known` that could use them."""
    users = _weights(known)
    found = {left.path: left for each in _weights(entries) for left in _held_twice(each)}
    return [left for left in found.values() if not any(_would_miss(each, left.path) for each in users)]


def unnamed_packages(known: Iterable[Entry]) -> list[Leftover]:
    """Files of packages that none of `known` names. An entry that is not known here may still need them."""
    named = {folder.name for each in _weights(known) for folder in _package_folders(each)}
    return [
        Leftover(folder, "of a package that no entry here names")
        for folder in sorted((cache_root() / "mirrors").glob("*"))
        if folder.is_dir() and folder.name not in named
    ]


def _broken_transfers(repo: RepoCache) -> Iterator[Leftover]:
    for path in sorted((repo.folder / "blobs").glob("*.incomplete")):
        key = path.name.removesuffix(".incomplete")
        if not re.fullmatch("[0-9a-f]{64}", key):
            continue  # the client's own
        if not _going_on(repo.lock_file(key)):
            yield Leftover(path, "a transfer that broke off", repo.lock_file(key))


def _going_on(lock: Path) -> bool:
    """Whether a transfer holds its lock; looking makes no file, and a cache that is read-only has no transfers."""
    from filelock import FileLock, Timeout

    if not lock.is_file():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


@contextmanager
def _held(lock: Path) -> Iterator[bool]:
    """Whether a transfer's lock could be taken, which is held meanwhile; not where the transfer is going on."""
    from filelock import FileLock, Timeout

    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=0):
            yield True
    except Timeout:
        yield False


def _held_twice(weights: Weights) -> Iterator[Leftover]:
    for spec in weights.files:
        made = [folder / spec.name for folder in _package_folders(weights)]
        if any(path.is_file() for path in made) and _has_published(weights, spec):
            reason = "the published file is in the Hub client's cache"
            yield from (Leftover(path, reason) for path in made if path.is_file())


def _has_published(weights: Weights, spec: FileSpec) -> bool:
    published = _repo(weights).find(spec.name)
    if published is None or spec.sha256 is None:
        return False
    return Verifier(cache_root(), keep=False).digest(published) == spec.sha256


def _would_miss(weights: Weights, made: Path) -> bool:
    """Whether an entry would have to fetch again if `made` were deleted."""
    return any(
        folder / spec.name == made and not _has_published(weights, spec)
        for folder in _package_folders(weights)
        for spec in weights.files
    )


def _stale_records() -> Iterator[Leftover]:
    for record in sorted((cache_root() / "verified").glob("*.json")):
        try:
            gone = not Path(json.loads(record.read_bytes())["path"]).exists()
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            gone = True
        if gone:
            yield Leftover(record, "the digest of a file that is gone")


def remove_entry(entry: Entry) -> list[Path]:
    """Delete the files of `entry` from the caches; content that another snapshot points to stays.

    Raises:
        FetchError: a file cannot be deleted.
    """
    removed = []
    weights = entry.manifest.weights
    try:
        for file in cached_files(entry):
            blob, linked = file.path.resolve(), file.path.is_symlink()
            own = weights is not None and linked and _is_blob_of(_repo(weights), blob)
            delete(file.path)
            removed.append(file.path)
            if weights and own and not _pointed_to(_repo(weights), blob):
                blob.unlink(missing_ok=True)
            _remove_empty(file.path.parent)
    except OSError as error:
        raise FetchError(f"{error.filename} cannot be deleted: {error.strerror or error}.") from error
    return removed


def _is_blob_of(repo: RepoCache, path: Path) -> bool:
    """Whether a file, its links followed, is content of this repository: not of another, and not from elsewhere."""
    return inside(path) and path.parent == (repo.folder / "blobs").resolve()


def _pointed_to(repo: RepoCache, blob: Path) -> bool:
    return any(path.resolve() == blob for path in (repo.folder / "snapshots").rglob("*") if path.is_symlink())


def _remove_empty(folder: Path) -> None:
    # A folder that is a link, or that is gone with one, is not to be emptied further.
    while folder.is_dir() and inside(folder) and not any(folder.iterdir()):
        if folder.is_symlink() or folder.name in ("snapshots", "mirrors"):
            return
        folder.rmdir()
        folder = folder.parent


def _weights(entries: Iterable[Entry]) -> list[Weights]:
    return [entry.manifest.weights for entry in entries if entry.manifest.weights is not None]


def _repo(weights: Weights) -> RepoCache:
    return RepoCache(hub_cache_root(), weights.repo, weights.revision)


def _package_folders(weights: Weights) -> list[Path]:
    return [cache_root() / "mirrors" / mirror.sha256[:32] for mirror in weights.mirror]
