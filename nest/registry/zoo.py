"""Where entries are found: the installed zoo, and directories given by path."""

from __future__ import annotations

import os
from pathlib import Path

from nest._suggest import did_you_mean
from nest.errors import ManifestError, UnknownEntryError
from nest.registry.entry import Entry

__all__ = ["entries", "find", "zoo_directory"]

_CACHE: dict[tuple[Path, tuple[int, ...]], Entry] = {}


def zoo_directory() -> Path:
    """The zoo's folder: `nest/_zoo` where nest is installed, the checkout's `zoo` from source."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_zoo"
    return installed if installed.is_dir() else package.parent / "zoo"


def entries() -> list[Entry]:
    """Every entry of the installed zoo, by name.

    Raises:
        ManifestError: an entry is not valid.
    """
    return [_open(zoo_directory() / name, trusted=True) for name in _names()]


def find(name: str | os.PathLike[str]) -> Entry:
    """The entry of that name, or in that directory.

    Args:
        name: a name of the installed zoo (`"whisper-tiny.en"`), or the path of an entry's folder. A plain
            word is a name; write `./folder` for a folder of the working directory.

    Raises:
        UnknownEntryError: there is none; the nearest names are suggested.
        ManifestError: the entry is not valid.
    """
    text = os.fspath(name)
    if isinstance(name, str) and os.sep not in text and "/" not in text and text not in (".", ".."):
        return _open(_folder_of(text), trusted=True)
    directory = Path(text).expanduser().resolve()
    if not (directory / "nest.toml").is_file():
        what = "has no nest.toml" if directory.is_dir() else "is not a directory"
        raise UnknownEntryError(f"'{text}' {what}: expected the folder of an entry, or the name of one.")
    return _open(directory, trusted=directory.parent == zoo_directory())


def _names() -> list[str]:
    zoo = zoo_directory()
    return sorted(file.parent.name for file in zoo.glob("*/nest.toml")) if zoo.is_dir() else []


def _folder_of(name: str) -> Path:
    names = _names()
    if name in names:
        return zoo_directory() / name
    hint = did_you_mean(name, names) or f" The zoo has: {', '.join(names) or 'no entries'}."
    local = (
        f" There is a folder of that name here: write './{name}' for it."
        if Path(name, "nest.toml").is_file()
        else ""
    )
    raise UnknownEntryError(f"No entry is named '{name}'.{hint}{local}")


def _open(directory: Path, *, trusted: bool) -> Entry:
    # Keyed by the files' times, so that an edited entry is read again in a running notebook.
    files = [directory / name for name in ("nest.toml", "bindings.json", "samples.json")]
    key = (directory, tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in files))
    if key not in _CACHE:
        entry = Entry(directory, trusted=trusted, folder_of=_folder_of)
        if trusted and entry.name != directory.name:
            raise ManifestError(
                f"Entry '{directory.name}' is not valid. {directory / 'nest.toml'}, 'model.name': expected "
                f"the name of its folder, '{directory.name}'; came '{entry.name}'."
            )
        _CACHE[key] = entry
    return _CACHE[key]
