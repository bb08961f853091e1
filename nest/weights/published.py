"""Sources of the published bytes over HTTP: the Hub at the pinned commit, and a site's mirror of it.

Both put files into the Hub client's cache: the same bytes, stored once, wherever they came from.
"""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nest.errors import DigestError
from nest.registry import FileSpec
from nest.weights.cache import writing
from nest.weights.digests import Verifier
from nest.weights.hub_cache import RepoCache
from nest.weights.source import Report, SourceError, without_password

__all__ = ["PublishedFiles"]

_VARIABLE = "HF_HOME (or cache_dir=)"


class PublishedFiles:
    """Files of one repository at one commit, in the Hub client's cache."""

    def __init__(self, cache: RepoCache, revision: str, verifier: Verifier) -> None:
        self.cache = cache
        self._revision = revision
        self._verifier = verifier

    def local(self, spec: FileSpec) -> Path | None:
        """The cached file, if it is there and is the pinned one.

        Raises:
            DigestError: it is another one.
        """
        path = self.cache.find(spec.name)
        if path is not None:
            self._verifier.check(path, name=spec.name, sha256=spec.sha256, size=spec.size)
        return path

    def bring(
        self,
        url: str,
        spec: FileSpec,
        report: Report,
        *,
        headers: Callable[[], Mapping[str, str]] = dict,
    ) -> Path:
        """Transfer the file from `url` into the cache; one process at a time, the others find it there.

        Raises:
            SourceError: it does not come.
            DigestError: it is not the pinned file.
            FetchError: the cache cannot be written.
        """
        with writing(self.cache.root, _VARIABLE):
            key = self.cache.key(spec.name, spec.sha256)
            part = self.cache.partial(key)
            with self.cache.lock(key):
                found = self._brought_by_another(spec)
                if found is None:
                    found = self._transfer(url, part, spec, report, headers())
        return found

    def _brought_by_another(self, spec: FileSpec) -> Path | None:
        try:
            if (path := self.local(spec)) is not None:
                return path
        except DigestError:
            return None  # damaged: to be replaced
        return None

    def _transfer(
        self, url: str, part: Path, spec: FileSpec, report: Report, headers: Mapping[str, str]
    ) -> Path:
        from nest.weights.transfer import transfer

        self._check_room(part, spec)
        arrival = transfer(url, part, spec, headers=headers, report=report)
        if spec.sha256 is None:
            self._check_unpinned(url, part, arrival)
        path = self.cache.place(part, spec.name, _blob_name(part, arrival))
        self._verifier.remember(path, arrival.sha256)
        return path

    def _check_room(self, part: Path, spec: FileSpec) -> None:
        """Say before a long transfer that it cannot end well."""
        if spec.size is None:
            return
        here = part.stat().st_size if part.is_file() else 0
        free = shutil.disk_usage(self.cache.root).free
        if spec.size - here > free:
            text = (
                f"No space left on device: '{spec.name}' needs {spec.size - here} bytes, and {free} are free"
            )
            raise OSError(errno.ENOSPC, text)

    def _check_unpinned(self, url: str, part: Path, arrival: Any) -> None:
        """Without a pin, what the server says of itself is all that there is to compare with."""
        fault = None
        if arrival.commit not in (None, self._revision):
            fault = f"it says that this is of the commit {arrival.commit}, not of {self._revision}"
        elif arrival.etag and re.fullmatch("[0-9a-f]{64}", arrival.etag) and arrival.etag != arrival.sha256:
            fault = f"it states the sha256 {arrival.etag}, and what came has {arrival.sha256}"
        if fault is not None:
            part.unlink()
            raise SourceError(f"{without_password(url)} contradicts itself: {fault}; it was deleted")


def _blob_name(part: Path, arrival: Any) -> str:
    """The Hub's name for the content where that is so: its sha256, or for small files git's."""
    if arrival.etag and re.fullmatch("[0-9a-f]{40}", arrival.etag):
        digest = hashlib.sha1(f"blob {part.stat().st_size}\0".encode(), usedforsecurity=False)
        with part.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        if digest.hexdigest() == arrival.etag:
            return str(arrival.etag)
    return str(arrival.sha256)
