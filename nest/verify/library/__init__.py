"""Reference libraries behind the interface of a session, by family of models.

A family's module is called like the family and has `build(entry, program, params) -> object` with `entries`, the names
that it can run, and `new_session()`, which gives something to call them on: `run_entry(name, inputs)` with a batch of
one, `numpy(value)`, and `greedy(decoding)`, the library's own generation, after what `listen` or the like has filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["knows", "library_of"]

_SHARED = dict.fromkeys(("llama", "qwen2", "qwen3", "phi3", "gpt2"), "decoder")
"""Families whose module is called otherwise than they are."""


def library_of(entry: Entry, program: Program, params: Mapping[str, Any]) -> Any:
    """The reference library's model of an entry's family with these parameters; None where it is not to be had."""
    if not knows(entry) or any(find_spec(name) is None for name in ("transformers", "torch")):
        return None
    return import_module(_module(entry)).build(entry, program, params)


def knows(entry: Entry) -> bool:
    """Whether the entry's family has a module here."""
    return find_spec(_module(entry)) is not None


def _module(entry: Entry) -> str:
    family = entry.manifest.model.family
    name = _SHARED.get(family, family.replace("-", "_"))
    return f"{__name__}.{name if name.isidentifier() else '_'}"
