"""Where entries are found: the installed zoo, the folders of `NEST_ZOO`, and directories given by path."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nest._suggest import did_you_mean
from nest.errors import ManifestError, UnknownEntryError
from nest.registry.card import Card, CardError, read_card
from nest.registry.hub_id import hub_id, pinned_by, unknown_repository
from nest.registry.place import Place

if TYPE_CHECKING:
    from nest.registry.entry import Entry

__all__ = [
    "BrokenEntryWarning",
    "cards",
    "entries",
    "find",
    "locate",
    "names",
    "search_path",
    "zoo_directory",
]

_FEW = 12
_CACHE: dict[tuple[Place, tuple[int, ...]], Entry] = {}


class BrokenEntryWarning(UserWarning):
    """An entry was left out because it is not valid; the message has its faults."""


def zoo_directory() -> Path:
    """The installed zoo's folder: `nest/_zoo` where nest is installed, the checkout's `zoo` from source."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_zoo"
    return installed if installed.is_dir() else package.parent / "zoo"


def search_path() -> list[Path]:
    """The folders of entries: the installed zoo, then those of `NEST_ZOO`.

    The installed zoo comes first, so that a name of it means the same on every machine.
    """
    given = [text for text in os.environ.get("NEST_ZOO", "").split(os.pathsep) if text.strip()]
    return [zoo_directory(), *(_expanded(text).absolute() for text in given)]


def _expanded(text: str) -> Path:
    """The path, with `~` filled in where there is such a home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def entries() -> list[Entry]:
    """Every valid entry of the installed zoo and of `NEST_ZOO`, by name. One that is not is left out with a warning.

    Warns:
        BrokenEntryWarning: names an entry that is not valid, with its faults, or a folder that cannot be read.
    """
    found = []
    for name, folder in sorted(_folders().items()):
        try:
            found.append(_open(_place(folder)))
        except ManifestError as error:
            warnings.warn(f"'{name}' was left out. {error}", BrokenEntryWarning, stacklevel=2)
    for fault in _unusable():
        warnings.warn(fault, BrokenEntryWarning, stacklevel=2)
    return found


def names() -> list[str]:
    """The names of all entries, valid or not."""
    return sorted(_folders())


def cards() -> tuple[list[Card], list[str]]:
    """The headings of all entries, by name, and what is wrong with those that cannot be read."""
    found, faults = [], []
    for _, folder in sorted(_folders().items()):
        try:
            found.append(read_card(folder, trusted=folder.parent == zoo_directory()))
        except CardError as error:
            faults.append(str(error))
    return found, [*faults, *_unusable()]


def find(name: str | os.PathLike[str]) -> Entry:
    """The entry of that name, alias or Hub repository, or in that directory.

    Args:
        name: a name or alias of an entry (`"whisper-tiny.en"`), the Hub repository that one pins
            (`"openai/whisper-tiny.en"`, or its address), or the path of an entry's folder. A plain word is a
            name; write `./folder` for a folder of the working directory.

    Raises:
        UnknownEntryError: there is none; the nearest names are suggested, or what can be done.
        ManifestError: the entry is not valid.
    """
    return _open(locate(name))


def locate(name: str | os.PathLike[str]) -> Place:
    """Where the entry is that `find` would open; it need not be valid.

    Raises:
        UnknownEntryError: as `find`.
    """
    text = os.fspath(name)
    if isinstance(name, str) and os.sep not in text and "/" not in text and text not in (".", ".."):
        return _named(text)
    repo = hub_id(text) if isinstance(name, str) else None
    known = cards()[0] if repo else []
    if repo and (card := pinned_by(repo, known)):
        return _place(card.folder)
    try:
        directory = _expanded(text).resolve()
        found, is_folder = (directory / "nest.toml").is_file(), directory.is_dir()
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # too long, a loop of links, closed, or no path at all
        why = error.strerror if isinstance(error, OSError) else None
        raise UnknownEntryError(f"'{_short(text)}' cannot be opened: {why or error}.") from error
    if found:
        return _directory_place(directory)
    if repo and not is_folder:
        raise unknown_repository(repo, known)
    if is_folder and (directory / "config.json").is_file():
        raise UnknownEntryError(
            f"'{text}' is a checkpoint, no entry: it has a config.json and no nest.toml. `nest adopt {text}` reads it "
            "as one."
        )
    what = "has no nest.toml" if is_folder else "is not a directory"
    raise UnknownEntryError(f"'{text}' {what}: expected the folder of an entry, or the name of one.")


def _folders() -> dict[str, Path]:
    """The folder of each name; of two with one name, the first of the search path."""
    found: dict[str, Path] = {}
    for zoo in search_path():
        for file in sorted(zoo.glob("*/nest.toml")) if _is_folder(zoo) else ():
            found.setdefault(file.parent.name, file.parent)
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # it is too long, or nobody may look
        return False


def _unusable() -> list[str]:
    """What is wrong with the folders of `NEST_ZOO`."""
    faults = []
    for zoo in search_path()[1:]:
        if not _is_folder(zoo):
            faults.append(f"NEST_ZOO names {_short(str(zoo))}, which is not a directory.")
        elif (zoo / "nest.toml").is_file():
            faults.append(
                f"NEST_ZOO names {zoo}, which is an entry; it takes folders of entries: {zoo.parent}"
            )
    return faults


def _named(name: str) -> Place:
    folders = _folders()
    if name in folders:
        return _place(folders[name])
    if len(alike := [folder for own, folder in folders.items() if own.lower() == name.lower()]) == 1:
        return _place(alike[0])  # names are known by their letters, whatever their case
    known = cards()[0]
    meant = [card for card in known if name.lower() in (alias.lower() for alias in card.aliases)]
    meant = [card for card in meant if card.trusted] or meant
    if len(meant) > 1:
        owners = " and ".join(card.name for card in meant)
        raise UnknownEntryError(f"'{name}' is an alias of {owners}: give one of these names.")
    if meant:
        return _place(meant[0].folder)
    raise UnknownEntryError(f"No entry is named '{_short(name)}'.{_hint(name, folders, known)}")


def _hint(name: str, folders: dict[str, Path], known: list[Card]) -> str:
    near = [*folders, *(alias for card in known for alias in card.aliases)]
    hint = did_you_mean(name, near) or _all_of(folders)
    try:
        is_folder = Path(name, "nest.toml").is_file()
    except (OSError, ValueError):  # it is too long for a folder's name
        is_folder = False
    return hint + (f" There is a folder of that name here: write './{name}' for it." if is_folder else "")


def _all_of(folders: Iterable[str]) -> str:
    names = list(folders)
    if len(names) > _FEW:
        return f" The zoo has {len(names)} entries, which 'nest list' shows."
    return f" The zoo has: {', '.join(names) or 'no entries'}."


def _short(name: str) -> str:
    return name if len(name) <= 200 else f"{name[:197]}..."


def _sibling(name: str) -> Place:
    """The entry that `@name/file` means: no alias, so that a shared file has one name."""
    folders = _folders()
    if name not in folders:
        raise UnknownEntryError(f"no entry is named '{name}'.{_hint(name, folders, [])}")
    return _place(folders[name])


def _place(folder: Path) -> Place:
    """The place of a folder of the search path."""
    return Place(folder, trusted=folder.parent == zoo_directory(), listed=True)


def _directory_place(folder: Path) -> Place:
    """The place of a folder given by its path, every link of it followed."""
    return Place(folder, trusted=folder.parent == zoo_directory().resolve())


def _open(place: Place) -> Entry:
    from nest.registry.entry import Entry

    # Keyed by the files' times, so that an edited entry is read again in a running notebook.
    files = [place.folder / name for name in ("nest.toml", "bindings.json", "samples.json")]
    key = (place, tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in files))
    if key not in _CACHE:
        _CACHE[key] = Entry(place, place_of=_sibling)
    return _CACHE[key]
