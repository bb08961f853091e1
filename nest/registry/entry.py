"""An entry of the zoo: its checked files, and the definition they name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from nest.errors import ManifestError
from nest.registry._definition import load_root
from nest.registry._faults import Faults
from nest.registry._reading import read_bindings, read_manifest, read_samples
from nest.registry._trust import what_would_run
from nest.registry.bindings import Bindings
from nest.registry.manifest import Manifest
from nest.registry.place import Place
from nest.registry.samples import Sample

__all__ = ["Entry"]


class Entry:
    """One model of the zoo.

    Args:
        place: the folder that holds `nest.toml`.
        place_of: where another entry is, by name, for files shared as `@entry/file`.

    Raises:
        ManifestError: with all the faults of the entry's files.
    """

    def __init__(self, place: Place, *, place_of: Callable[[str], Place]) -> None:
        self._place = place
        self._place_of = place_of
        directory = place.folder
        faults = Faults(directory.name)
        name = directory.name if place.listed else None
        manifest = read_manifest(directory / "nest.toml", faults, known=place_of, name=name)
        samples = read_samples(directory / "samples.json", faults)
        bindings = self._read_bindings(manifest, faults)
        faults.check()
        if manifest is None or bindings is None:
            raise ManifestError(f"Entry '{directory.name}' is not valid.")
        self.manifest: Manifest = manifest
        self.bindings: Bindings = bindings
        self.samples: list[Sample] = samples

    def _read_bindings(self, manifest: Manifest | None, faults: Faults) -> Bindings | None:
        if manifest is None:
            # Their faults are said too, where they lie in the usual place.
            usual = self.directory / "bindings.json"
            return read_bindings(usual, faults) if usual.is_file() else None
        if manifest.weights is not None:
            return read_bindings(self._file(manifest.weights.bindings), faults)
        # Of an entry that pins no weights yet: what it says of names holds already.
        usual = self.directory / "bindings.json"
        return read_bindings(usual, faults) if usual.is_file() else Bindings(())

    @property
    def directory(self) -> Path:
        """The folder that holds `nest.toml`."""
        return self._place.folder

    @property
    def name(self) -> str:
        """The entry's name, such as `whisper-tiny.en`."""
        return self.manifest.model.name

    @property
    def reference(self) -> str:
        """What finds it again: its name where it is on the search path, else the path of its folder."""
        return self.name if self._place.listed else str(self.directory)

    @property
    def generics(self) -> dict[str, Any]:
        """The checkpoint's values of the definition's generics and static fields."""
        return dict(self.manifest.generics)

    @cached_property
    def source(self) -> Path:
        """The definition file, of this entry or of the one that `@entry/file.py` names."""
        return self._file(self.manifest.source.path)

    @property
    def trusted(self) -> bool:
        """Whether the definition file is of the installed zoo, so that it runs without being asked for."""
        return self._owner(self.manifest.source.path).trusted

    def definition(self, *, trust_source: bool | None = None) -> type:
        """The root class of the definition. Running the file is running its Python.

        Args:
            trust_source: run the file of an entry outside the installed zoo. Entries of the zoo are trusted.

        Raises:
            ManifestError: the file is outside the installed zoo and `trust_source` is not true; says what would run.
            DefinitionError: the file is missing, not Python, raises while it runs, or has no such class.
        """
        if not (trust_source or self.trusted):
            raise ManifestError(self.refusal)
        return load_root(self.source, self.manifest.source.root)

    @property
    def refusal(self) -> str:
        """What is said where the definition is not trusted: what would run, and how to allow it."""
        what = what_would_run(self.source, self.manifest.source.root)
        return (
            f"Entry '{self.name}' is not of the installed zoo, and loading it would run a Python file: {what}. "
            f"Read that file, then pass trust_source=True (--trust-source on the command line) to allow it."
        )

    def _file(self, path: str) -> Path:
        return self._owner(path).folder / (path.partition("/")[2] if path.startswith("@") else path)

    def _owner(self, path: str) -> Place:
        return self._place_of(path[1:].partition("/")[0]) if path.startswith("@") else self._place

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, {str(self.directory)!r})"
