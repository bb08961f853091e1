"""The file: configuration first, then the helpers and classes of the generated source, loading, and a way in."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

from nest import __version__
from nest._suggest import did_you_mean
from nest.backends.source.layout import GeneratedText
from nest.errors import CallError
from nest.export.source import nnx, torch
from nest.export.source.config import config_text
from nest.export.source.names import publisher_names
from nest.ir.program import Program
from nest.loading import program_of
from nest.registry import Entry, find

__all__ = ["BACKENDS", "eject"]

BACKENDS = {"torch": torch, "nnx": nnx}


def eject(
    name: str | os.PathLike[str] | Entry,
    backend: str = "torch",
    *,
    trust_source: bool | None = None,
    **generics: Any,
) -> str:
    """The source of a model as one file that imports the framework and safetensors, and not nest.

    It computes what the model of `nest.load` computes, and has the definition's names, docstrings and comments.

    Args:
        name: an entry's name, the path of its directory, or an entry.
        backend: `"torch"` or `"nnx"`.
        trust_source: run the definition of an entry outside the installed zoo.
        **generics: other values for the definition's generics.

    Raises:
        CallError: no such backend.
        UnknownEntryError, ManifestError, DefinitionError: the entry or its definition.
        MissingDependencyError: the framework is not installed, whose helpers are read from its backend.
    """
    if backend not in BACKENDS:
        raise CallError(
            f"Source is ejected for {' and '.join(BACKENDS)}; backend='{backend}' was given."
            f"{did_you_mean(backend, BACKENDS)}"
        )
    entry = name if isinstance(name, Entry) else find(os.fspath(name))
    program = program_of(entry, trust_source=trust_source, **generics)
    framework = BACKENDS[backend]
    made = framework.source(program)
    names, load = publisher_names(entry, program), framework.load_text(made.root)
    parts = (
        config_text(entry, program, made, framework.TYPE),
        *([names.table] if names is not None else []),
        *made.parts,
        *([names.function] if names is not None else []),
        load if names is not None else load.replace("published(name)", "name"),
        framework.main_text(entry, program),
    )
    imports = (*made.imports, *framework.IMPORTS, *(["import re"] if names is not None else []))
    doc = _doc(entry, program, backend, framework.TITLE)
    return GeneratedText(doc, imports, parts, made.root, made.takes).text


def _doc(entry: Entry, program: Program, backend: str, title: str) -> str:
    """What the file is, what the definition says of itself, and how it is made again."""
    about = ast.get_docstring(ast.parse(Path(_definition(program)).read_text(encoding="utf-8")))
    usage = f"Written by `nest eject {entry.name} --backend {backend}`, nest {__version__}."
    heading = f"{entry.manifest.model.title} in {title}. The licence of its weights: {entry.manifest.model.license}."
    return "\n".join([heading, "", *([about, ""] if about else []), usage])


def _definition(program: Program) -> str:
    return next(iter(program.root.functions.values())).code.co_filename
