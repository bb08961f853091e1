"""The sources of an entry's files, in the order that they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nest.registry import Weights
from nest.weights.digests import Verifier
from nest.weights.hub import Hub, hub_cache_root
from nest.weights.hub_cache import RepoCache
from nest.weights.mirror import MirrorSource
from nest.weights.mirrors import DirectoryMirror, OwnFolder, UrlMirror
from nest.weights.site import Policy
from nest.weights.source import Kind, Source

__all__ = ["Sources"]


class Sources:
    """Every source of one entry's files.

    Args:
        weights: what the entry pins.
        rules: what the site allows, and its mirrors.
        root: where nest keeps files of its own.
        cache_dir: in place of the Hub client's cache.
        token: for the Hub.
        progress: show pip's bar.
    """

    def __init__(
        self,
        weights: Weights,
        rules: Policy,
        *,
        root: Path,
        cache_dir: Path | None = None,
        token: str | None = None,
        progress: bool = False,
    ) -> None:
        self.cache = RepoCache(cache_dir or hub_cache_root(), weights.repo, weights.revision)
        self.verifier = Verifier(root)
        self._weights = weights
        self._packages = [one for one in weights.mirror if rules.refuses_license(one.license) is None]
        self._rules = rules
        self._root = root
        self._progress = progress
        self.hub = Hub(weights.repo, weights.revision, self.cache, self.verifier, token=token)
        self._own = None if weights.directory is None else OwnFolder(Path(weights.directory), self.verifier)
        others = [source for kind in rules.sources for source in self._of(kind)]
        self.allowed: list[Source] = others if self._own is None else [self._own]

    @property
    def here(self) -> list[Source]:
        """Those that may have a file on this machine. The Hub's cache is one of them, whoever filled it."""
        if self._own is not None:
            return [self._own]
        local = sorted(self.allowed, key=lambda source: source.kind != "hub")
        return local if self.hub in local else [self.hub, *local]

    def _of(self, kind: Kind) -> Iterator[Source]:
        if kind == "hub":
            yield self.hub
        elif kind == "directory":
            # It may hold what a package has in place of the published bytes, under the package's licence.
            weights = self._weights.model_copy(update={"mirror": self._packages})
            for mirror in self._rules.mirrors:
                if mirror.directory is not None:
                    yield DirectoryMirror(mirror.directory, weights, self.verifier)
        elif kind == "url":
            for mirror in self._rules.mirrors:
                if mirror.url is not None:
                    yield UrlMirror(mirror.url, self._weights, self.cache, self.verifier)
        else:
            pinned = {spec.name: spec for spec in self._weights.files}
            for package in self._packages:
                yield MirrorSource(package, pinned, self._root, self.verifier, progress=self._progress)
