"""A folder on this machine as a repository; no network is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from nest.adopting.repository import Repository
from nest.errors import AdoptionError
from nest.ir.parammap import TensorSpec
from nest.registry import FileSpec
from nest.weights import cache_root, open_checkpoint
from nest.weights.digests import Verifier

__all__ = ["local_repository"]


def local_repository(given: str | os.PathLike[str]) -> Repository:
    """The folder `given`, which the reference library's `save_pretrained` wrote or somebody brought.

    Raises:
        AdoptionError: there is no such folder.
    """
    try:
        folder = Path(given).expanduser().resolve()
        names = _names(folder) if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError) as error:
        raise AdoptionError(f"'{os.fspath(given)}' cannot be opened: {error}.") from error
    if names is None:
        raise AdoptionError(
            f"'{os.fspath(given)}' is neither a folder nor a repository of the Hub (owner/name)."
        )
    verifier = Verifier(cache_root())

    def pin(name: str) -> FileSpec:
        path = folder / name
        return FileSpec(name=name, size=path.stat().st_size, sha256=verifier.digest(path))

    def header(name: str) -> Mapping[str, TensorSpec]:
        return open_checkpoint(folder / name).specs

    return Repository(
        str(folder),
        repo=f"local/{re.sub(r'[^A-Za-z0-9_.-]', '-', folder.name).lstrip('.-') or 'model'}",
        revision=None,
        names=names,
        path=lambda name: folder / name,
        pin=pin,
        header=header,
        folder=folder,
    )


def _names(folder: Path) -> frozenset[str]:
    """Files of the folder and of the folders in it, such as `1_Pooling/config.json`; hidden ones are left out."""
    found = (path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.is_file())
    names = (path.relative_to(folder).as_posix() for path in found)
    return frozenset(name for name in names if not name.startswith(".") and "/." not in name)
