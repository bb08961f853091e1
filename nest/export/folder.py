"""Folders that appear whole: written beside the target under another name, then moved."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nest.errors import InputError
from nest.weights._files import user_path

__all__ = ["Staged", "staged"]


_MARKS = frozenset({"io.json", "config.json", "run.py"})
"""Files that only one format, or two, write: where they stay beside new ones, two exports are mixed."""


class Staged:
    """A folder in the making.

    Attributes:
        path: where its files are written.
        files: where they are, once the block has ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: list[Path] = []

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file of the folder."""
        (self.path / name).write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def staged(directory: str | os.PathLike[str]) -> Iterator[Staged]:
    """A folder to fill, which replaces the files of `directory` that it has too when the block ends without an error.

    A directory that is not there appears whole; in one that is, other files are left alone.

    Raises:
        InputError: `directory` is a file, or it cannot be written.
        ConfigError: it begins with the home of a user who is not known.
    """
    target = user_path(directory, "The folder to write")
    if target.exists() and not target.is_dir():
        raise InputError(
            f"{target} is a file; give the name of a folder, which is made where it is not there."
        )
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    folder = Staged(made)
    try:
        yield folder
        _settle(folder, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _settle(folder: Staged, target: Path) -> None:
    names = sorted(path.name for path in folder.path.iterdir())
    if not target.exists():
        folder.path.chmod(0o777 & ~_umask())  # mkdtemp's is for its owner alone
        folder.path.replace(target)
    else:
        _refuse_another(target, names)
        for name in names:
            (folder.path / name).replace(target / name)
    folder.files = [target / name for name in names]


def _refuse_another(target: Path, names: list[str]) -> None:
    """Formats share file names, and graphs that find another format's weights compute something, but not the model."""
    here = {path.name for path in target.iterdir()}
    replaced = sorted(here.intersection(names))
    other = sorted(n for n in here.difference(names) if n in _MARKS or n.endswith((".onnx", ".jax_export")))
    if replaced and other:
        raise InputError(
            f"{target} holds another export ({other[0]}), whose {replaced[0]} this one would replace. Give another "
            f"folder."
        )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
