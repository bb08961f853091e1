"""Copies of fetched files in a folder to carry: to a machine without a network, or a share.

FOLDER/OWNER/NAME/REVISION/FILE     what a directory mirror of the site's configuration has
FOLDER/SHA256SUMS                   for `sha256sum --check`, where nest is not at hand
FOLDER/config.toml                  a configuration that names the folder: NEST_CONFIG=FOLDER/config.toml
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from nest.errors import DigestError, FetchError
from nest.registry import Weights
from nest.weights._files import atomic
from nest.weights.digests import file_sha256
from nest.weights.fetch import Fetched

__all__ = ["copy_to"]

_CONFIG = """\
# Files for nest, copied by: nest pull --local-dir
# This folder may lie anywhere. NEST_CONFIG, set to the path of this file, lets nest use it.

[[mirror]]
directory = "."
"""


def copy_to(folder: Path, weights: Weights, fetched: Fetched) -> dict[str, Path]:
    """Copy the fetched files below `folder`; a file that is there already and is equal stays as it is.

    Raises:
        FetchError: the folder cannot be written.
        DigestError: a copy differs from what was copied: the disk is failing.
    """
    copies: dict[str, Path] = {}
    try:
        sums = _read_sums(folder)
        for name, path in fetched.files.items():
            relative = f"{weights.repo}/{weights.revision}/{name}"
            copies[name] = folder / relative
            sums[relative] = _copy(path, copies[name])
        lines = "".join(f"{digest}  {relative}\n" for relative, digest in sorted(sums.items()))
        _write(folder / "SHA256SUMS", lines)
        if not (folder / "config.toml").exists():
            _write(folder / "config.toml", _CONFIG)
    except OSError as error:
        where = error.filename or folder
        raise FetchError(
            f"{where} cannot be written: {error.strerror or error}. Make room or give permission there, or name "
            f"another folder for the copies."
        ) from error
    return copies


def _copy(source: Path, target: Path) -> str:
    """Copy a file, whole or not at all; returns its sha256, read back from the copy."""
    digest = hashlib.sha256()
    with source.open("rb") as original:
        if target.is_file() and target.stat().st_size == os.fstat(original.fileno()).st_size:
            there = file_sha256(target)
            if there == file_sha256(source):
                return there
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic(target) as copy:
            while chunk := original.read(1 << 20):
                digest.update(chunk)
                copy.write(chunk)
    if file_sha256(target) != digest.hexdigest():
        target.unlink()
        raise DigestError(f"{target} is not what was written there. It was deleted; the disk may be failing.")
    return digest.hexdigest()


def _read_sums(folder: Path) -> dict[str, str]:
    """Path and digest of what earlier copies have listed."""
    file = folder / "SHA256SUMS"
    pairs = [line.split("  ", 1) for line in file.read_text().splitlines()] if file.is_file() else []
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _write(path: Path, text: str) -> None:
    with atomic(path) as file:
        file.write(text.encode())
