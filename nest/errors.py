"""The errors that nest raises on purpose.

Each carries one paragraph for a person: what was wrong, where, what was expected, what came, and what to do.
The command line prints that paragraph and exits with code 1; a traceback is shown only on request.
"""

from __future__ import annotations

__all__ = [
    "AdoptionError",
    "BindingError",
    "CallError",
    "ConfigError",
    "DefinitionError",
    "DigestError",
    "FetchError",
    "InputError",
    "ManifestError",
    "MissingDependencyError",
    "NestError",
    "UnknownEntryError",
    "WeightsError",
]


class NestError(Exception):
    """Base of every error that nest raises for a person to read."""


class DefinitionError(NestError):
    """A model definition breaks a rule of the layer API.

    `located` says that the message already names the line of the definition.
    """

    located = False


class ManifestError(NestError):
    """A file of a zoo entry (`nest.toml`, `bindings.json`, `samples.json`, the definition) is not valid."""


class UnknownEntryError(NestError):
    """No entry has the name that was asked for."""


class AdoptionError(NestError):
    """A checkpoint is of no family that a definition of the zoo computes, or says something that it does not."""


class BindingError(NestError):
    """Checkpoint tensors and definition parameters do not match one to one."""


class WeightsError(NestError):
    """A weight file cannot be read: damaged, truncated, or of a form that is not supported."""


class DigestError(WeightsError):
    """A file's bytes are not the pinned ones."""


class FetchError(NestError):
    """A pinned file could not be fetched from any allowed source."""


class ConfigError(NestError):
    """A configuration or lock file cannot be read, or is not valid."""


class CallError(NestError):
    """An entry was called with arguments that its signature does not admit."""


class InputError(NestError):
    """A task was given input that it cannot use: a missing file, not audio, not numbers."""


class MissingDependencyError(NestError, ImportError):
    """An optional package is needed and not installed; the message says which extra brings it."""
