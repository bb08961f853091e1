"""Mirrors of a site's own: a URL with places to fill in, and a folder; and the folder of an adopted checkpoint."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit

from nest.errors import DigestError
from nest.registry import FileSpec, Weights
from nest.weights.digests import Verifier
from nest.weights.hub_cache import RepoCache
from nest.weights.published import PublishedFiles
from nest.weights.source import FOREIGN, Kind, Report, SourceError, without_password

__all__ = ["DirectoryMirror", "OwnFolder", "UrlMirror"]


class UrlMirror:
    """The published files at a URL of the site's own. No token of the Hub is sent there.

    Args:
        template: such as `"https://models.example/{repo}/{revision}/{file}"`.
        weights: what is published.
        cache: where its files are kept: they are the published ones, so with those of the Hub.
        verifier: compares them with their pins.
    """

    kind: Kind = "url"

    def __init__(self, template: str, weights: Weights, cache: RepoCache, verifier: Verifier) -> None:
        self._template = template
        self._weights = weights
        self._files = PublishedFiles(cache, weights.revision, verifier)

    def __str__(self) -> str:
        return f"the mirror {self.host}"

    @property
    def host(self) -> str | None:
        return urlsplit(without_password(self._template)).netloc

    def offers(self, name: str) -> bool:
        return True

    def location(self, name: str) -> str:
        return without_password(self._url(name))

    def _url(self, name: str) -> str:
        return (
            self._template.replace("{repo}", self._weights.repo)
            .replace("{revision}", self._weights.revision)
            .replace("{file}", quote(name))
        )

    def local(self, spec: FileSpec) -> Path | None:
        return None  # what it brought lies in the Hub client's cache

    def download(self, spec: FileSpec, report: Report) -> Path:
        return self._files.bring(self._url(spec.name), spec, report)

    def note(self, spec: FileSpec) -> str | None:
        return None


class DirectoryMirror:
    """A folder of published files, used where they lie: `OWNER/NAME/REVISION/FILE`, or a cache of the Hub client."""

    kind: Kind = "directory"
    host = None

    def __init__(self, folder: Path, weights: Weights, verifier: Verifier) -> None:
        self._folder = folder
        self._weights = weights
        self._verifier = verifier
        self._hub_layout = RepoCache(folder, weights.repo, weights.revision)

    def __str__(self) -> str:
        return f"the folder {self._folder}"

    def offers(self, name: str) -> bool:
        return True

    def location(self, name: str) -> str:
        return str(self._folder / self._weights.repo / self._weights.revision / name)

    def local(self, spec: FileSpec) -> Path | None:
        plain = Path(self.location(spec.name))
        path = plain if plain.is_file() else self._hub_layout.find(spec.name)
        if path is not None and self._stand_in(path, spec) is None:
            self._verifier.check(path, name=spec.name, sha256=spec.sha256, size=spec.size)
        return path

    def download(self, spec: FileSpec, report: Report) -> Path:
        try:
            path = self.local(spec)
        except OSError as error:
            raise SourceError(f"it cannot be read: {error.strerror or error}") from error
        if path is None:
            raise SourceError(f"it has no {self.location(spec.name)}", answered=True)
        return path

    def note(self, spec: FileSpec) -> str | None:
        path = self.local(spec)
        licence = self._stand_in(path, spec) if path is not None else None
        if licence is None:
            return None
        return f"{spec.name}: {FOREIGN}; from {self} (licence: {licence})"

    def _stand_in(self, path: Path, spec: FileSpec) -> str | None:
        """The licence of the bytes, where they are not the publisher's but those that the entry declares."""
        declared = {
            member.converted_sha256 if member.converter else member.sha256: mirror.license
            for mirror in self._weights.mirror
            for member in mirror.files
            if member.replaces == spec.name
        }
        declared.pop(spec.sha256, None)
        if not declared or spec.sha256 is None:
            return None
        try:
            return declared.get(self._verifier.digest(path))
        except OSError as error:
            raise DigestError(f"{path} cannot be read: {error.strerror or error}") from error


class OwnFolder:
    """The folder that a checkpoint was adopted from, which nobody has published."""

    kind: Kind = "directory"
    host = None

    def __init__(self, folder: Path, verifier: Verifier) -> None:
        self._folder = folder
        self._verifier = verifier

    def __str__(self) -> str:
        return f"the folder {self._folder}"

    def offers(self, name: str) -> bool:
        return True

    def location(self, name: str) -> str:
        return str(self._folder / name)

    def local(self, spec: FileSpec) -> Path | None:
        path = self._folder / spec.name
        if not path.is_file():
            return None
        self._verifier.check(path, name=spec.name, sha256=spec.sha256, size=spec.size)
        return path

    def download(self, spec: FileSpec, report: Report) -> Path:
        try:
            path = self.local(spec)
        except OSError as error:
            raise SourceError(f"it cannot be read: {error.strerror or error}") from error
        if path is None:
            raise SourceError(
                "it is not there any more: adopt the folder again where it lies now", answered=True
            )
        return path

    def note(self, spec: FileSpec) -> str | None:
        return None
