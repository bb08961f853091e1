"""An entry of the zoo: its checked files, and the definition they name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from nest.errors import ManifestError
from nest.registry._definition import load_root
from nest.registry._faults import Faults
from nest.registry._reading import read_bindings, read_manifest, read_samples
from nest.registry.bindings import Bindings
from nest.registry.manifest import Manifest
from nest.registry.samples import Sample

__all__ = ["Entry"]


class Entry:
    """One model of the zoo.

    Args:
        directory: the folder that holds `nest.toml`.
        trusted: the entry is of the installed zoo, so that its definition runs without being asked for.
        folder_of: the folder of another entry, by name, for files shared as `@entry/file`.

    Raises:
        ManifestError: with all the faults of the entry's files.
    """

    def __init__(self, directory: Path, *, trusted: bool, folder_of: Callable[[str], Path]) -> None:
        self.directory = directory
        self.trusted = trusted
        self._folder_of = folder_of
        faults = Faults(directory.name)
        manifest = read_manifest(directory / "nest.toml", faults)
        samples = read_samples(directory / "samples.json", faults)
        bindings: Bindings | None = None
        if manifest is not None:
            bindings = Bindings(())
            if manifest.weights:
                bindings = read_bindings(self._resolve(manifest.weights.bindings), faults)
        faults.check()
        if manifest is None or bindings is None:
            raise ManifestError(f"Entry '{directory.name}' is not valid.")
        self.manifest: Manifest = manifest
        self.bindings: Bindings = bindings
        self.samples: list[Sample] = samples

    @property
    def name(self) -> str:
        """The entry's name, such as `whisper-tiny.en`."""
        return self.manifest.model.name

    @property
    def generics(self) -> dict[str, int | str]:
        """The checkpoint's values of the definition's generics."""
        return dict(self.manifest.generics)

    @cached_property
    def source(self) -> Path:
        """The definition file, of this entry or of the one that `@entry/file.py` names."""
        return self._resolve(self.manifest.source.path)

    def definition(self, *, trust_source: bool | None = None) -> type:
        """The root class of the definition. Running the file is running its Python.

        Args:
            trust_source: run the file of an entry outside the installed zoo. Entries of the zoo are trusted.

        Raises:
            ManifestError: the file is outside the installed zoo and `trust_source` is not true.
            DefinitionError: the file is missing, not Python, raises while it runs, or has no such class.
        """
        shared_by_the_zoo = self.manifest.source.path.startswith("@")
        if not (trust_source or self.trusted or shared_by_the_zoo):
            raise ManifestError(
                f"Entry '{self.name}' is not of the installed zoo, and loading it would run a Python file: "
                f"{self.source}. Read that file, then pass trust_source=True (--trust-source on the command "
                f"line) to allow it."
            )
        return load_root(self.source, self.manifest.source.root)

    def _resolve(self, path: str) -> Path:
        if not path.startswith("@"):
            return self.directory / path
        entry, _, rest = path[1:].partition("/")
        return self._folder_of(entry) / rest

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, {str(self.directory)!r})"
