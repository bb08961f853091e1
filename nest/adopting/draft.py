"""An entry as it is to be written: its manifest, bindings, list of tensors, and what a person has still to say."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nest.adopting.toml import toml_text
from nest.errors import CallError, FetchError
from nest.ir.parammap import TensorSpec

__all__ = ["Draft"]


@dataclass(frozen=True)
class Draft:
    """The files of an entry, in memory.

    Args:
        manifest: the tables of `nest.toml`.
        bindings: the content of `bindings.json`; None where the manifest names another entry's.
        tensors: of the checkpoint, as its headers have them; None where there is no checkpoint.
        notes: what a person should know of it, sentences.
        definition: the text of `model.py`; None where the manifest names another entry's.
    """

    manifest: Mapping[str, Mapping[str, Any]]
    bindings: Mapping[str, Any] | None
    tensors: Mapping[str, TensorSpec] | None
    notes: tuple[str, ...] = ()
    definition: str | None = None

    @property
    def name(self) -> str:
        """The entry's name."""
        return str(self.manifest["model"]["name"])

    def named(self, name: str) -> Draft:
        """The same under another name."""
        return replace(self, manifest={**self.manifest, "model": {**self.manifest["model"], "name": name}})

    def files(self) -> dict[str, str]:
        """The text of every file, by its name."""
        weights = self.manifest.get("weights")
        found = {"nest.toml": toml_text(self.manifest)}
        if self.definition is not None:
            found["model.py"] = self.definition
        if self.bindings is not None:
            found["bindings.json"] = _json(self.bindings)
        if self.tensors is not None and weights is not None:
            listed = {
                "repo": weights["repo"],
                "revision": weights["revision"],
                "source": "header",
                "note": f"The header of {' and '.join(_weight_files(weights))}.",
                "tensors": {name: str(self.tensors[name]) for name in sorted(self.tensors)},
            }
            found["tensors.json"] = _json(listed)
        from nest.adopting.page import page, sample

        return {**found, "samples.json": _json(sample(self)), "README.md": page(self)}

    def keep(self, root: Path) -> Path:
        """Write it below `root`, in a folder that its content names; one that is there already is used.

        Raises:
            FetchError: it cannot be written.
        """
        files = self.files()
        digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
        folder = root / "adopted" / f"{self.name}-{digest}"
        if not (folder / "nest.toml").is_file():
            try:
                folder.parent.mkdir(parents=True, exist_ok=True)
                _write(files, folder)
            except OSError as error:
                if not (folder / "nest.toml").is_file():  # another process was quicker
                    raise FetchError(
                        f"The cache {root} cannot be written: {error.strerror or error}. NEST_CACHE names another."
                    ) from error
        return folder

    def write(self, folder: Path) -> Path:
        """Write it as the entry `folder`, whole or not at all; nothing is overwritten.

        Raises:
            CallError: something of that name is there, or it cannot be written.
        """
        if folder.exists():
            raise CallError(
                f"{folder} is there already, and nothing is overwritten: give another folder, or remove it."
            )
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _write(self.named(folder.name).files(), folder)
        except OSError as error:
            raise CallError(f"{folder} cannot be written: {error.strerror or error}.") from error
        return folder


def _write(files: Mapping[str, str], folder: Path) -> None:
    """Put the files into a new folder, which takes its name when all of them are there."""
    new = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        new.mkdir()
        for name, text in files.items():
            (new / name).write_text(text, "utf-8")
        new.rename(folder)
    finally:
        if new.exists():
            shutil.rmtree(new, ignore_errors=True)


def _weight_files(weights: Mapping[str, Any]) -> list[str]:
    return [spec["name"] for spec in weights["files"] if spec["name"].endswith(".safetensors")]


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
