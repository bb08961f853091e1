"""Entries of the zoo: found by name or directory, read, and checked.

Names come with the module that has them, when they are used: finding and listing entries needs no pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nest.registry.bindings import Bindings, Rule
    from nest.registry.card import Card
    from nest.registry.entry import Entry
    from nest.registry.manifest import (
        FileSpec,
        Generation,
        Manifest,
        Mirror,
        MirrorFile,
        Preprocess,
        Tolerance,
        Weights,
    )
    from nest.registry.samples import Sample
    from nest.registry.zoo import (
        BrokenEntryWarning,
        cards,
        entries,
        find,
        locate,
        names,
        search_path,
        zoo_directory,
    )

__all__ = [
    "Bindings",
    "BrokenEntryWarning",
    "Card",
    "Entry",
    "FileSpec",
    "Generation",
    "Manifest",
    "Mirror",
    "MirrorFile",
    "Preprocess",
    "Rule",
    "Sample",
    "Tolerance",
    "Weights",
    "cards",
    "entries",
    "find",
    "locate",
    "names",
    "search_path",
    "zoo_directory",
]

_MODULES = {
    "bindings": ("Bindings", "Rule"),
    "card": ("Card",),
    "entry": ("Entry",),
    "manifest": (
        "FileSpec",
        "Generation",
        "Manifest",
        "Mirror",
        "MirrorFile",
        "Preprocess",
        "Tolerance",
        "Weights",
    ),
    "samples": ("Sample",),
    "zoo": (
        "BrokenEntryWarning",
        "cards",
        "entries",
        "find",
        "locate",
        "names",
        "search_path",
        "zoo_directory",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nest.registry' has no attribute '{name}'")
    value = getattr(import_module(f"nest.registry.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
