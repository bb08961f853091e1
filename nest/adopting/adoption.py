"""`nest.adopt`: from a checkpoint that no entry lists to a model."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from nest.adopting.binding import fitting_binding
from nest.adopting.draft import Draft
from nest.adopting.family import Family, Refused, family_of
from nest.adopting.keys import Size
from nest.adopting.local import local_repository
from nest.adopting.remote import remote_repository
from nest.adopting.repository import Repository
from nest.adopting.tables import manifest_of
from nest.errors import AdoptionError, DefinitionError
from nest.ir.inventory import parameters
from nest.ir.program import Program
from nest.layers.entry import elaborate_with, entry_names
from nest.registry import Entry, cards, find
from nest.registry._definition import load_root
from nest.registry.hub_id import hub_id
from nest.weights import cache_root

__all__ = ["Adopted", "adopt", "adopted_entry", "draft_of", "open_repository"]

_LARGE = 2_000_000_000
"""Parameters from which a model computes in bf16 unless it is told otherwise, as the zoo's own do."""


@dataclass(frozen=True)
class Adopted:
    """An entry that was made of a checkpoint; `draft` is its files, `notes` what a person should know of it."""

    entry: Entry
    draft: Draft
    notes: tuple[str, ...]


def adopt(
    repo_or_dir: str | os.PathLike[str],
    *,
    revision: str | None = None,
    backend: str | None = None,
    local_files_only: bool = False,
    token: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    **load_options: Any,
) -> Any:
    """Load a checkpoint that no entry lists, such as a fine-tune, by the definition of its family.

    Its configuration is read key by key: each is a size or a fact of the definition, or says nothing about what is
    computed, or has the one value that the definition computes with. Anything else is refused by name, because a model
    that runs and differs is worse than none. No Python of the repository is ever run.

    Args:
        repo_or_dir: a repository of the Hub, `owner/name`, or a folder.
        revision: a commit, branch or tag of the repository; `main` if left out. What it means now is said, and pinned.
        backend: as `nest.load`.
        local_files_only: ask no network.
        token: for gated repositories.
        cache_dir: the Hub cache to use instead of its default.
        progress: say on standard error what was adopted, and show downloads.
        **load_options: what else `nest.load` takes.

    Returns:
        A model as `nest.load` returns it. Its `entry` lies in nest's cache; `nest.pipeline(model)` is the whole job.

    Raises:
        AdoptionError: no family of the zoo computes it; every key that is in the way is named.
        BindingError: its tensors are not those of the family.
        FetchError, WeightsError: its files cannot be had, or are damaged.
    """
    fetching: dict[str, Any] = {"local_files_only": local_files_only, "token": token, "cache_dir": cache_dir}
    adopted = adopted_entry(repo_or_dir, revision=revision, **fetching)
    if progress is not False and sys.stderr is not None:
        for note in adopted.notes:
            sys.stderr.write(f"{note}\n")
        sys.stderr.flush()
    from nest.loading import load

    return load(adopted.entry, backend=backend, progress=progress, **fetching, **load_options)


def adopted_entry(
    repo_or_dir: str | os.PathLike[str],
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    token: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Adopted:
    """The entry of a checkpoint, without its weights: recognised, read, bound. Arguments and errors are `adopt`'s."""
    repository = open_repository(
        repo_or_dir, revision=revision, local_files_only=local_files_only, token=token, cache_dir=cache_dir
    )
    draft = draft_of(repository)
    return Adopted(find(draft.keep(cache_root())), draft, draft.notes)


def open_repository(
    repo_or_dir: str | os.PathLike[str], *, revision: str | None = None, **fetching: Any
) -> Repository:
    """What a person means by a path or a name.

    Raises:
        AdoptionError, FetchError: there is no such folder or repository.
    """
    repo = hub_id(repo_or_dir) if isinstance(repo_or_dir, str) else None
    if repo is not None and not Path(repo_or_dir).is_dir():
        return remote_repository(repo, revision=revision, **fetching)
    if revision is not None:
        raise AdoptionError(
            f"revision='{revision}' is of a repository of the Hub, and '{repo_or_dir}' is a folder."
        )
    return local_repository(repo_or_dir)


def draft_of(repository: Repository) -> Draft:
    """The entry of a repository, in memory.

    Raises:
        AdoptionError, BindingError: as `adopt`.
    """
    where = f"config.json of {repository.name}"
    config = repository.config
    family = family_of(config, where)
    form = family.choose(repository, family.form(config, where))
    values, generics = family.read(config, where)
    try:
        tables = family.tables(repository, values)
    except Refused as refusal:
        raise AdoptionError(f"{repository.name}: {refusal}.") from refusal
    generics |= tables.pop("generics", {})
    like = find(form.like)
    root = load_root(like.source, form.root or like.manifest.source.root)
    tensors = repository.tensors
    generics = {name: value for name, value in generics.items() if value is not None}
    generics["T"] = "bf16" if sum(prod(spec.shape) for spec in tensors.values()) >= _LARGE else "f32"
    if absurd := [name for name, size in generics.items() if name.endswith("Layers") and size > len(tensors)]:
        raise AdoptionError(
            f"{where}: {absurd[0]} = {generics[absurd[0]]}, and its files have {len(tensors)} tensors."
        )
    program = _program(root, generics, family, values, where)
    sizes = {name: value.value for name, value in program.root.generics.items()}
    binding = fitting_binding(
        family,
        form,
        _relatives(like),
        parameters(program),
        tensors,
        {name: value for name, value in sizes.items() if isinstance(value, int | str)},
        source=repository.name,
    )
    manifest = manifest_of(repository, like, form, generics, tables, binding, entry_names(root))
    return Draft(
        manifest,
        None if binding.entry else binding.content,
        tensors,
        notes=tuple(_notes(repository, config, family, like, manifest)),
    )


def _program(
    root: Any, generics: Mapping[str, Any], family: Family, values: Mapping[str, Any], where: str
) -> Program:
    """The definition at the configuration's sizes."""
    try:
        return elaborate_with(
            root, {name: _fact(value) for name, value in generics.items()}, name=family.model_type
        )
    except (DefinitionError, ValueError, ZeroDivisionError) as error:
        sizes = [f"{name} = {values[name]}" for name, key in family.keys.items() if isinstance(key, Size)]
        raise AdoptionError(
            f"{where}: the definition of '{family.model_type}' has no such sizes: {', '.join(sizes)}. {error}"
        ) from error


def _fact(value: Any) -> Any:
    """A list of the file is a tuple of the definition."""
    return tuple(map(_fact, value)) if isinstance(value, list) else value


def _relatives(like: Entry) -> list[Entry]:
    """The zoo's entries of one definition: their bindings are tried in turn."""
    family = like.manifest.model.family
    alike = [
        find(card.folder)
        for card in cards()[0]
        if card.trusted and card.family == family and card.name != like.name
    ]
    return [like, *(one for one in alike if one.source == like.source)]


def _notes(
    repository: Repository,
    config: Mapping[str, Any],
    family: Family,
    like: Entry,
    manifest: Mapping[str, Any],
) -> Iterator[str]:
    at = f" at commit {repository.revision}" if repository.revision else ""
    yield f"Adopted {repository.name}{at}: family '{family.model_type}', the definition of '{like.name}'."
    if config.get("auto_map"):
        yield (
            f"Its config.json names Python of its own (auto_map). None of it is run: what is computed is what "
            f"'{family.model_type}' means in the reference library."
        )
    if "task" not in manifest:
        yield "Its files do not say enough for a pipeline, such as a tokenizer.json; the model itself is complete."
