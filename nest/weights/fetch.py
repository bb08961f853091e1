"""An entry's files: from the cache, the Hub at the pinned commit, or a pinned mirror; all verified."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from nest._suggest import did_you_mean
from nest.errors import DigestError, FetchError
from nest.registry import Entry, FileSpec
from nest.weights.cache import cache_root
from nest.weights.digests import Verifier
from nest.weights.hub import Hub, SourceError
from nest.weights.mirror import MirrorSource

__all__ = ["Fetched", "fetch"]


@dataclass(frozen=True)
class Fetched:
    """Verified files of an entry, by their published name.

    `origins` says where each one's bytes came from; `notes` what a person should know, such as bytes that are
    not the publisher's own.
    """

    files: dict[str, Path] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def fetch(
    entry: Entry,
    names: Iterable[str] | None = None,
    *,
    local_files_only: bool = False,
    token: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Fetched:
    """Have files of `entry` on disk. What is cached and intact needs no network, and none is asked.

    Args:
        entry: whose files.
        names: some of its `weights.files`; all required ones where None.
        local_files_only: take what is cached, and never ask the network (as does `HF_HUB_OFFLINE=1`).
        token: for the Hub; where None, `HF_TOKEN` or the stored login.
        cache_dir: a folder for everything, in place of the Hub client's cache and of `NEST_CACHE`.
        progress: show bars; where None, only if standard error is a terminal.

    Raises:
        FetchError: no source has the file, or the cache cannot be written; says what each source answered.
        DigestError: the bytes that came are not the pinned ones.
        WeightsError: a mirror's file cannot be converted.
    """
    weights = entry.manifest.weights
    if weights is None:
        raise FetchError(f"Entry '{entry.name}' names no weights: its nest.toml has no table [weights].")
    folder = None if cache_dir is None else Path(cache_dir).expanduser().absolute()
    root = cache_root() if folder is None else folder / "nest"
    verifier = Verifier(root)
    pinned = {spec.name: spec for spec in weights.files}
    fetcher = _Fetcher(
        entry=entry.name,
        hub=Hub(weights.repo, weights.revision, token=token, cache_dir=folder),
        mirrors=[MirrorSource(mirror, pinned, root, verifier) for mirror in weights.mirror],
        verifier=verifier,
        offline=local_files_only or Hub.offline(),
        progress=sys.stderr.isatty() if progress is None else progress,
    )
    for spec in _chosen(entry, pinned, names):
        fetcher.get(spec)
    return fetcher.fetched


def _chosen(entry: Entry, pinned: dict[str, FileSpec], names: Iterable[str] | None) -> list[FileSpec]:
    if names is None:
        return [spec for spec in pinned.values() if spec.required]
    for name in (names := list(names)):
        if name not in pinned:
            raise FetchError(
                f"Entry '{entry.name}' has no file '{name}': its files are {', '.join(pinned)}."
                f"{did_you_mean(name, pinned)}"
            )
    return [pinned[name] for name in names]


@dataclass
class _Fetcher:
    entry: str
    hub: Hub
    mirrors: list[MirrorSource]
    verifier: Verifier
    offline: bool
    progress: bool
    fetched: Fetched = field(default_factory=Fetched)

    def get(self, spec: FileSpec) -> None:
        """Take the file from the first source that has it."""
        damaged: DigestError | None = None
        if (path := self.hub.cached(spec.name)) is not None:
            try:
                return self._take_hub(spec, path)
            except DigestError as error:
                damaged = error
        mirrors = [mirror for mirror in self.mirrors if mirror.offers(spec.name)]
        for mirror in mirrors:
            if (path := mirror.cached(spec.name)) is not None:
                return self._take_mirror(spec, mirror, path)
        if self.offline:
            raise damaged or FetchError(
                f"'{spec.name}' of '{self.entry}' is not in the cache ({self.hub.cache}), and the network is "
                f"not to be asked (local_files_only, or HF_HUB_OFFLINE is set). Fetch it once with the "
                f"network: nest pull {self.entry}"
            )
        return self._ask(spec, mirrors, damaged)

    def _ask(self, spec: FileSpec, mirrors: list[MirrorSource], damaged: DigestError | None) -> None:
        answers = []
        try:
            path = self.hub.download(spec.name, replace=damaged is not None, progress=self.progress)
            return self._take_hub(spec, path)
        except SourceError as error:
            answers.append(f"{self.hub}: {error}")
        for mirror in mirrors:
            try:
                return self._take_mirror(spec, mirror, mirror.download(spec.name, progress=self.progress))
            except SourceError as error:
                answers.append(f"{mirror}: {error}")
        if damaged is not None:
            answers.append(f"the cached copy: {damaged}")
        raise FetchError(
            f"'{spec.name}' of '{self.entry}' could not be fetched. " + "; ".join(answers) + ". "
            "Check the network (HF_ENDPOINT and proxies are used), or copy the cache of another machine."
        )

    def _take_hub(self, spec: FileSpec, path: Path) -> None:
        self.verifier.check(path, name=spec.name, sha256=spec.sha256, size=spec.size)
        self.fetched.files[spec.name] = path
        self.fetched.origins[spec.name] = str(self.hub)

    def _take_mirror(self, spec: FileSpec, mirror: MirrorSource, path: Path) -> None:
        self.fetched.files[spec.name] = path
        self.fetched.origins[spec.name] = str(mirror)
        if (note := mirror.note(spec.name)) is not None:
            self.fetched.notes.append(note)
