"""What a pull would do: each file, whether it is here, and whom it would be asked of. Nothing is fetched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nest.errors import DigestError, FetchError
from nest.registry import Entry, FileSpec
from nest.weights._files import user_path
from nest.weights.cache import cache_root
from nest.weights.fetch import check_pinned, chosen_files
from nest.weights.lock import LockFile
from nest.weights.mirror import MirrorSource
from nest.weights.site import policy
from nest.weights.source import Source
from nest.weights.sources import Sources

__all__ = ["Place", "PlannedFile", "plan_fetch"]


@dataclass(frozen=True)
class Place:
    """Somewhere that a file would be asked of: the host, None where that is no network, and what there.

    The licence, size and digest are of what is there: of the published file, or of the whole package.
    """

    kind: str
    host: str | None
    location: str
    license: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True)
class PlannedFile:
    """One file of an entry. `path` is where it is already; `sha256` is None where nobody has pinned it."""

    entry: str
    name: str
    size: int | None
    sha256: str | None
    license: str
    path: Path | None
    places: tuple[Place, ...]

    @property
    def asked(self) -> tuple[Place, ...]:
        """The places that would be asked in turn; none where the file is here. A folder has been looked into."""
        if self.path is not None:
            return ()
        return tuple(place for place in self.places if place.kind != "directory")

    @property
    def host(self) -> str | None:
        """The host that is asked first; None where the file is here or no network is asked."""
        return next((place.host for place in self.asked), None)


def plan_fetch(
    entry: Entry,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    lock: str | os.PathLike[str] | None = None,
    require_hashes: bool = False,
) -> list[PlannedFile]:
    """The required files of `entry`, as `nest.weights.fetch` would come by them.

    Raises:
        FetchError: the entry has no weights, the site does not allow it, or a digest is required and not known.
        ConfigError: the site's configuration or the lock file is not valid.
    """
    weights = entry.manifest.weights
    if weights is None:
        raise FetchError(f"Entry '{entry.name}' names no weights: its nest.toml has no table [weights].")
    rules = policy()
    rules.check_license(entry)
    folder = None if cache_dir is None else user_path(cache_dir, "The cache's folder").absolute()
    root = cache_root() if folder is None else folder / "nest"
    sources = Sources(weights, rules, root=root, cache_dir=folder)
    locked = LockFile.choose(lock, root)
    specs = [locked.pin(weights, spec) for spec in chosen_files(entry)]
    check_pinned(entry, specs, rules, locked, require_hashes=require_hashes)
    return [_planned(entry, spec, sources) for spec in specs]


def _planned(entry: Entry, spec: FileSpec, sources: Sources) -> PlannedFile:
    path = next((path for source in sources.here if (path := _local(source, spec)) is not None), None)
    places = [_place(entry, source, spec) for source in sources.allowed if source.offers(spec.name)]
    license_ = entry.manifest.model.license
    return PlannedFile(entry.name, spec.name, spec.size, spec.sha256, license_, path, tuple(places))


def _place(entry: Entry, source: Source, spec: FileSpec) -> Place:
    license_, size, sha256 = entry.manifest.model.license, spec.size, spec.sha256
    if isinstance(source, MirrorSource):
        license_, size, sha256 = source.mirror.license, source.mirror.size, source.mirror.sha256
    return Place(source.kind, source.host, source.location(spec.name), license_, size, sha256)


def _local(source: Source, spec: FileSpec) -> Path | None:
    try:
        return source.local(spec)
    except (DigestError, OSError):
        return None  # it would be fetched again
