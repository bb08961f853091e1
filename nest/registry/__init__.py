"""Entries of the zoo: found by name or directory, read, and checked."""

from __future__ import annotations

from nest.registry.bindings import Bindings, Rule
from nest.registry.entry import Entry
from nest.registry.manifest import FileSpec, Generation, Manifest, Mirror, MirrorFile, Preprocess, Weights
from nest.registry.samples import Sample
from nest.registry.zoo import entries, find, zoo_directory

__all__ = [
    "Bindings",
    "Entry",
    "FileSpec",
    "Generation",
    "Manifest",
    "Mirror",
    "MirrorFile",
    "Preprocess",
    "Rule",
    "Sample",
    "Weights",
    "entries",
    "find",
    "zoo_directory",
]
