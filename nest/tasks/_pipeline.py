"""Choose the task of an entry, and put its pipeline together."""

from __future__ import annotations

import os
from typing import Any

from nest._timing import stretch, timed
from nest.errors import InputError
from nest.registry import find
from nest.tasks._kinds import kind_of

_FETCH_OPTIONS = ("local_files_only", "token", "cache_dir", "progress")
_BACKEND_OPTIONS = ("device", "precision", "dtype", "providers", "threads", "session_options")


@timed("pipeline")
def pipeline(
    name_or_model: Any,
    *,
    task: str | None = None,
    backend: str | None = None,
    plan: str = "exact",
    **load_options: Any,
) -> Any:
    """Return the whole job of a model as a callable: for speech to text, a recording in and a transcript out.

    Args:
        name_or_model: the name of a zoo entry, the path of an entry's directory, or a model of `nest.load`.
        task: which of the entry's tasks, such as `"fill-mask"`; the first that its manifest names if left out.
        backend: what computes it; if left out, the first that is installed, as `nest.load` chooses. A loaded model
            has its own.
        plan: `"exact"`, the definition as it is written; `"fast"`, the same results by the shortest way, which pays
            where much is computed: weights are packed first. A plan that there is not is refused by the first call.
        **load_options: what else `nest.load` takes. Those about fetching hold for the tokenizer as well.

    Raises:
        UnknownEntryError: there is no such entry.
        ManifestError: the entry has no task, or one that has no pipeline.
        CallError: the entry has other tasks than the one asked for.
        InputError: a model that was loaded without an entry, or options for one that is loaded already.
        MissingDependencyError: no backend is installed, or what reads the task's inputs is not.
    """
    if isinstance(name_or_model, str | os.PathLike):
        name = os.fspath(name_or_model)
        entry = find(name)
        kind = kind_of(entry, task)  # before any weights are read
        own = entry.manifest.task.generics if entry.manifest.task else {}
        load_options = {**own, **load_options}
        from nest.loading import chosen_backend, load

        fetch_options = {name: value for name, value in load_options.items() if name in _FETCH_OPTIONS}
        asked = {name: value for name, value in load_options.items() if name in _BACKEND_OPTIONS}
        if backend is None:
            backend = chosen_backend(extras=kind.extras, **asked)
        model = load(name, backend=backend, **load_options)
        with stretch("tokenizer and settings"):
            return kind.make(model, plan, **fetch_options)
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
    return kind_of(name_or_model.entry, task).make(name_or_model, plan)
