"""Choose the task of an entry, and put its pipeline together."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from nest.errors import InputError, ManifestError
from nest.registry import Entry, find
from nest.tasks import _settings
from nest.tasks.transcribe import Transcriber

_FETCH_OPTIONS = ("local_files_only", "token", "cache_dir", "progress")
_BACKEND_OPTIONS = ("device", "precision", "dtype", "providers", "threads", "session_options")


def pipeline(
    name_or_model: Any, *, backend: str | None = None, plan: str = "exact", **load_options: Any
) -> Transcriber:
    """Return the whole job of a model as a callable: for speech to text, a recording in and a transcript out.

    Args:
        name_or_model: the name of a zoo entry, the path of an entry's directory, or a model of `nest.load`.
        backend: what computes it; if left out, the first that is installed, as `nest.load` chooses. A loaded model
            has its own.
        plan: `"exact"`, the definition as it is written; `"fast"`, the same results by the shortest way, which pays
            where more than a few windows are transcribed: weights are packed first. A plan that there is not is
            refused by the first call.
        **load_options: what else `nest.load` takes. Those about fetching hold for the tokenizer as well.

    Raises:
        UnknownEntryError: there is no such entry.
        ManifestError: the entry has no task, or one that has no pipeline.
        InputError: a model that was loaded without an entry, or options for one that is loaded already.
        MissingDependencyError: no backend is installed, or what reads recordings is not.
    """
    if isinstance(name_or_model, str | os.PathLike):
        name = os.fspath(name_or_model)
        make = _maker(find(name))  # before any weights are read
        from nest.loading import chosen_backend, load

        fetch_options = {name: value for name, value in load_options.items() if name in _FETCH_OPTIONS}
        asked = {name: value for name, value in load_options.items() if name in _BACKEND_OPTIONS}
        if backend is None:
            backend = chosen_backend(extras=("audio",), **asked)
        return make(load(name, backend=backend, **load_options), plan, **fetch_options)
    given = [*(["backend"] if backend is not None else []), *load_options]
    if given:
        raise InputError(
            f"The model given is loaded already, and {', '.join(given)} can only be chosen while it is "
            "loaded. Pass its name instead, or leave them out."
        )
    if getattr(name_or_model, "entry", None) is None:
        raise InputError(
            f"A pipeline takes the name of a zoo entry, or a model that nest.load made from one; a "
            f"{type(name_or_model).__name__} without an entry came, so its task and tokenizer are unknown."
        )
    return _maker(name_or_model.entry)(name_or_model, plan)


def _maker(entry: Entry) -> Callable[..., Transcriber]:
    task = entry.manifest.task
    kind = task.kind if task else None
    make = _MAKERS.get(kind or "")
    if make is None:
        found = f"task.kind is '{kind}'" if kind else "it has no [task] table"
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: {found}, so there is no pipeline for '{entry.name}'; expected "
            f"one of: {', '.join(_MAKERS)}. nest.load gives the model itself."
        )
    return make


def _transcriber(model: Any, plan: str, **fetch_options: Any) -> Transcriber:
    rules = _settings.generation_rules(model.entry)
    mel = _settings.mel_settings(model.entry)
    return Transcriber(model, _settings.tokenizer(model.entry, rules, **fetch_options), rules, mel, plan=plan)


_MAKERS: dict[str, Callable[..., Transcriber]] = {"transcription": _transcriber}
