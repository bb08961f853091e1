"""Write the catalog: only what changed, and nothing that no entry stands behind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nest
from nest.catalog.facts import Facts
from nest.catalog.folder import Folder
from nest.catalog.index import index
from nest.catalog.page import page
from nest.catalog.samples import shared_media
from nest.errors import InputError
from nest.registry import cards, zoo_directory

__all__ = ["Report", "build"]

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
    try:
        return _build(Folder(folder), progress)
    except OSError as error:
        where, why = error.filename or folder, error.strerror or error
        raise InputError(f"The catalog cannot be written: {where}: {why}.") from error


def _build(folder: Folder, progress: Callable[[str, int, int], None] | None) -> Report:
    found = _headings()
    digests = {facts.name: _digest(facts) for facts in found}
    written: list[str] = []
    for number, facts in enumerate(found, 1):
        if progress:
            progress(facts.name, number, len(found))
        if not folder.has(facts.name, digests[facts.name]):
            folder.put(facts.name, digests[facts.name], page(facts))
            written.append(facts.name)
    whole = hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()
    if not folder.has("assets", whole):
        folder.put("assets", whole, {**_assets(), **shared_media(facts.entry for facts in found)})
    if not folder.has(".", whole):
        folder.put(".", whole, index(found))
    removed = folder.keep([*digests, "assets", "."])
    kept = tuple(facts.name for facts in found if facts.name not in written)
    return Report(folder.path, tuple(written), kept, tuple(removed))


def _assets() -> dict[str, bytes | Path]:
    """The scripts one by one, since no page needs all of them; the styles as one file, of which every page is made."""
    styles = [ASSETS / "catalog.css", *(f for f in sorted(ASSETS.glob("*.css")) if f.name != "catalog.css")]
    together = "\n".join(file.read_text(encoding="utf-8") for file in styles)
    return {**{file.name: file for file in ASSETS.glob("*.js")}, "catalog.css": together.encode()}


def _headings() -> list[Facts]:
    """Of the installed zoo; folders of NEST_ZOO are their owner's, and so are their faults."""
    listed, faults = cards()
    own = [fault for fault in faults if str(zoo_directory()) in fault]
    if own:
        raise InputError("The catalog cannot be written: " + "; ".join(own))
    return [Facts.of(card) for card in listed if card.trusted]


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
