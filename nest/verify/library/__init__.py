"""Reference libraries behind the interface of a session, by family of models.

A family's module has `build(entry, program, params) -> object` with `entries`, the names that it can run, and
`new_session()`, which gives something to call them on: `run_entry(name, inputs)` with a batch of one, `numpy(value)`,
and `greedy(decoding)`, the library's own generation, after what `listen` or the like has filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["library_of"]

_FAMILIES = {
    "whisper": "nest.verify.library.whisper",
    "bert": "nest.verify.library.bert",
    "clip": "nest.verify.library.clip",
    "dinov2": "nest.verify.library.dinov2",
    "resnet": "nest.verify.library.resnet",
    "siglip": "nest.verify.library.siglip",
    "vit": "nest.verify.library.vit",
    "modernbert": "nest.verify.library.modernbert",
    "olmo2": "nest.verify.library.olmo2",
    "gemma2": "nest.verify.library.gemma2",
    **dict.fromkeys(("llama", "qwen2", "qwen3", "phi3", "gpt2"), "nest.verify.library.decoder"),
}


def library_of(entry: Entry, program: Program, params: Mapping[str, Any]) -> Any:
    """The reference library's model of an entry's family with these parameters; None where it is not to be had."""
    module = _FAMILIES.get(entry.manifest.model.family)
    if module is None or find_spec("transformers") is None or find_spec("torch") is None:
        return None
    return import_module(module).build(entry, program, params)
