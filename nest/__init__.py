"""nest: a model zoo whose models are defined once and run on many frameworks.

    import nest

    print(nest.pipeline("whisper-tiny.en")("talk.mp3").text)   # the whole job
    model = nest.load("whisper-tiny.en", backend="torch")      # a torch.nn.Module
    nest.adopt("owner/fine-tune")                              # a checkpoint of a known family that no entry lists
    nest.find("whisper-tiny.en"), nest.entries()               # entries of the zoo, without weights

Importing nest loads no framework, not even numpy: each name brings what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nest import errors, ir, layers, registry, tasks, weights
    from nest.adopting import adopt
    from nest.errors import NestError
    from nest.export import eject, save
    from nest.footprint import memory
    from nest.loading import load
    from nest.registry import Entry, entries, find
    from nest.tasks import Transcriber, Transcript, pipeline

__all__ = [
    "Entry",
    "NestError",
    "Transcriber",
    "Transcript",
    "__version__",
    "adopt",
    "eject",
    "entries",
    "errors",
    "find",
    "ir",
    "layers",
    "load",
    "memory",
    "pipeline",
    "registry",
    "save",
    "tasks",
    "weights",
]

__distribution__ = "nest-zoo"
__version__ = "0.1.0"

_HOME = {
    "Entry": "nest.registry",
    "NestError": "nest.errors",
    "Transcriber": "nest.tasks",
    "Transcript": "nest.tasks",
    "adopt": "nest.adopting",
    "eject": "nest.export",
    "entries": "nest.registry",
    "find": "nest.registry",
    "load": "nest.loading",
    "memory": "nest.footprint",
    "pipeline": "nest.tasks",
    "save": "nest.export",
}
"""Public name -> the module that it is taken from when it is first used; the others are subpackages."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from nest._collector import held
        from nest._timing import stretch

        with held(), stretch(f"import {_HOME[name]}"):
            value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in __all__:
        return import_module(f"nest.{name}")
    raise AttributeError(f"module 'nest' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
