"""Write the catalog: only what changed, and nothing that no entry stands behind."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nest
from nest.catalog.facts import Facts
from nest.catalog.index import index
from nest.catalog.page import page
from nest.catalog.samples import shared_media
from nest.errors import InputError
from nest.registry import cards

__all__ = ["Report", "build"]

STAMP = ".catalog.json"
"""What the folder was made from: by it a second build knows what it need not make again, and what it may delete."""

ASSETS = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Report:
    """What a build did: names of entries whose pages it wrote, found as they were, and removed."""

    folder: Path
    written: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def build(folder: Path, *, progress: Callable[[str, int, int], None] | None = None) -> Report:
    """Write the pages of every entry of the zoo, the index, and what they load, to a folder of its own.

    A page whose entry has not changed, nor nest itself, is left as it is. Each file is written to a temporary one and
    renamed.

    Args:
        folder: where to; made if it is not there.
        progress: called with an entry's name, its number and how many there are.

    Raises:
        InputError: the folder holds files that no build wrote.
        ManifestError: an entry is not valid; the message has every fault.
    """
    before = _stamps(folder)
    found = _headings()
    digests = {facts.name: _digest(facts) for facts in found}
    written: list[str] = []
    for number, facts in enumerate(found, 1):
        if progress:
            progress(facts.name, number, len(found))
        if before.get(facts.name) != digests[facts.name] or not (folder / facts.name / "index.md").is_file():
            _replace(folder / facts.name, page(facts))
            written.append(facts.name)
    removed = sorted(set(before) - set(digests) - {""})
    for name in removed:
        shutil.rmtree(folder / name, ignore_errors=True)
    whole = hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()
    if before.get("") != whole or not (folder / "index.md").is_file():
        _replace(folder / "assets", {**_assets(), **shared_media(facts.entry for facts in found)})
        for name, content in index(found).items():
            _write(folder / name, content)
    _write(folder / STAMP, json.dumps({**digests, "": whole}, indent=0).encode())
    kept = tuple(facts.name for facts in found if facts.name not in written)
    return Report(folder, tuple(written), kept, tuple(removed))


def _assets() -> dict[str, bytes | Path]:
    """The scripts one by one, since no page needs all of them; the styles as one file, of which every page is made."""
    styles = [ASSETS / "catalog.css", *(f for f in sorted(ASSETS.glob("*.css")) if f.name != "catalog.css")]
    together = "\n".join(file.read_text(encoding="utf-8") for file in styles)
    return {**{file.name: file for file in ASSETS.glob("*.js")}, "catalog.css": together.encode()}


def _headings() -> list[Facts]:
    listed, faults = cards()
    if faults:
        raise InputError("The catalog cannot be written: " + "; ".join(map(str, faults)))
    return [Facts.of(card) for card in listed if card.trusted]


def _stamps(folder: Path) -> dict[str, str]:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; the catalog is written to a folder of its own.")
    if not folder.exists() or not any(folder.iterdir()):
        return {}
    try:
        stamps = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        # A name becomes a path that may be deleted: it is one folder of this one, or none of ours.
        return {
            str(name): str(digest)
            for name, digest in stamps.items()
            if Path(name).name == name and name != ".."
        }
    except (OSError, ValueError, AttributeError):
        raise InputError(
            f"{folder} is not empty, and no catalog was written there: it has no {STAMP}. Give an empty folder or a "
            f"new one; a build deletes what it did not write."
        ) from None


def _digest(facts: Facts) -> str:
    """Of all that a page is made from: the entry's folder, those it shares files with, its samples' media, and nest."""
    folders = {facts.entry.directory, facts.entry.source.parent}
    digest = hashlib.sha256(_own_digest().encode())
    for folder in sorted(folders):
        for file in _files(folder):
            digest.update(f"{file.name}\0".encode() + file.read_bytes())
    for place, file in sorted(shared_media([facts.entry]).items()):
        digest.update(f"{place}\0".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _own_digest() -> str:
    digest = hashlib.sha256()
    package = Path(nest.__file__).parent
    for file in _files(package):
        digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder).parts
        if file.is_file() and "__pycache__" not in inside and not inside[0].startswith(("_zoo", "_assets")):
            yield file


def _replace(folder: Path, files: Mapping[str, bytes | Path]) -> None:
    """Make a folder hold these files and no others."""
    for name, content in files.items():
        _write(folder / name, content)
    for file in list(folder.rglob("*")):
        if file.is_file() and file.relative_to(folder).as_posix() not in files:
            file.unlink()


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
