"""`nest new`: a folder for a new entry, with all that can be known without its author."""

from __future__ import annotations

import os
import re
from typing import Any

from nest.adopting.adoption import draft_of, open_repository
from nest.adopting.binding import Binding
from nest.adopting.draft import Draft
from nest.adopting.family import Form
from nest.adopting.repository import Repository
from nest.adopting.skeleton import GENERICS, TINY, skeleton
from nest.adopting.suggest import suggest
from nest.adopting.tables import manifest_of, weights_table
from nest.errors import AdoptionError, BindingError, CallError
from nest.ir.inventory import parameters
from nest.layers.entry import entry_names
from nest.loading import program_of
from nest.registry import Entry, cards, find

__all__ = ["new_entry"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def new_entry(
    name: str,
    *,
    like: str | None = None,
    source: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
) -> Draft:
    """The files of a new entry, not written yet.

    With a checkpoint of a known family, everything is read from it, as `nest.adopt` does. With `like`, the definition
    is that entry's or family's; without either, a small one that elaborates stands where the author's is to be.

    Args:
        name: of the entry.
        like: an entry, or a family.
        source: a repository of the Hub or a folder with the checkpoint.
        revision: of the repository.
        local_files_only: ask no network.

    Raises:
        CallError: the name cannot be one, or neither an entry nor a family is called as `like` is.
        FetchError, WeightsError: the checkpoint cannot be had, or is damaged.
    """
    if not _NAME.fullmatch(name):
        raise CallError(f"'{name}' cannot name an entry: letters, digits, '.', '_' and '-' are expected.")
    model = None if like is None else _model_of(like)
    if source is None:
        return (_bare(name) if model is None else _alike(name, model)).named(name)
    repository = open_repository(source, revision=revision, local_files_only=local_files_only)
    why = None
    try:
        draft = draft_of(repository)
        owner = draft.manifest["source"]["path"].removeprefix("@").partition("/")[0]
        if model is None or find(owner).source == model.source:
            return draft.named(name)
        why = f"Its configuration is read for the definition of '{owner}', and '{like}' was asked for."
    except (AdoptionError, BindingError) as error:
        why = str(error)
    draft = _bare(name, repository) if model is None else _suggested(repository, model)
    more = "" if model is None else f" Generics are those of '{model.name}': compare each with config.json."
    note = f"It was not adopted as it is. {why}{more}"
    return Draft(draft.manifest, draft.bindings, draft.tensors, (*draft.notes, note), draft.definition).named(
        name
    )


def _model_of(like: str) -> Entry:
    """The entry that a name means, or the first of a family."""
    for card in cards()[0]:
        if like in (card.name, *card.aliases):
            return find(card.name)
    family = [card for card in cards()[0] if card.family == like]
    if not family:
        raise CallError(
            f"No entry and no family is called '{like}'; the families are "
            f"{', '.join(sorted({card.family for card in cards()[0]}))}."
        )
    own = [card for card in family if not find(card.name).manifest.source.path.startswith("@")]
    return find((own or family)[0].name)


def _alike(name: str, model: Entry) -> Draft:
    """An entry of another's definition, without a checkpoint."""
    manifest = model.manifest
    path = manifest.source.path
    tables: dict[str, Any] = {
        "model": _heading(name, model.manifest.model.family),
        "source": {
            "path": path if path.startswith("@") else f"@{model.name}/{path}",
            "root": manifest.source.root,
            "entry": manifest.source.entry,
        },
        "generics": dict(manifest.generics),
        "check": dict(manifest.check),
        "tiny": dict(manifest.tiny),
    }
    return Draft({key: table for key, table in tables.items() if table}, None, None)


def _suggested(repository: Repository, model: Entry) -> Draft:
    """An entry of another's definition, bound to a checkpoint as far as names and shapes are certain."""
    found = suggest(parameters(program_of(model)), repository.tensors)
    binding = Binding({"bindings": found.bindings(certain=True)})
    generics = {key: value for key, value in model.generics.items() if key not in ("Batch", "Capacity")}
    root = model.definition()
    manifest = manifest_of(repository, model, Form(model.name), generics, {}, binding, entry_names(root))
    left = len(found.unmatched_params) + sum(one.confidence != "certain" for one in found.proposals)
    note = f"{left} lines of bindings.json are left to write: nest bind --suggest says which."
    return Draft(manifest, binding.content, repository.tensors, (note,))


def _bare(name: str, repository: Repository | None = None) -> Draft:
    """An entry with a small definition of its own."""
    tables: dict[str, Any] = {
        "model": _heading(name, name.lower()),
        "source": {"path": "model.py", "root": "Model", "entry": "forward"},
        "generics": GENERICS,
        "check": {"B": 1, "S": 8},
        "tiny": TINY,
    }
    if repository is None:
        return Draft(tables, None, None, definition=skeleton(name))
    tables["links"] = (
        {} if repository.folder else {"huggingface": f"https://huggingface.co/{repository.repo}"}
    )
    tables["weights"] = weights_table(repository, {}, "bindings.json")
    tables = {key: table for key, table in tables.items() if table}
    return Draft(tables, {"bindings": {}}, repository.tensors, definition=skeleton(name))


def _heading(name: str, family: str) -> dict[str, Any]:
    return {
        "name": name,
        "title": " ".join(word[:1].upper() + word[1:] for word in re.split(r"[-_]+", name)),
        "summary": "TODO: one sentence, what it is.",
        "license": "NOASSERTION",
        "family": family,
        "tags": [family],
    }
