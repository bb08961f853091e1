"""The manifest of an adopted checkpoint: its own facts, and those of the definition from the entry that it is like."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nest.adopting.binding import Binding
from nest.adopting.family import Form, Tables
from nest.adopting.repository import Repository
from nest.checking._licenses import license_fault
from nest.errors import AdoptionError
from nest.registry import Entry, FileSpec

__all__ = ["entry_name", "manifest_of", "owner_path", "weights_table"]

_READ = (
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json", "modules.json",
    "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json",
)  # fmt: skip
"""Files that adoption reads and a load does not."""


def manifest_of(
    repository: Repository,
    like: Entry,
    form: Form,
    generics: Mapping[str, Any],
    tables: Tables,
    binding: Binding,
    entry_names: Iterable[str],
) -> Tables:
    """The tables of `nest.toml`, in the order in which entries have them."""
    known, own = set(entry_names), like.manifest
    limit = generics.get("MaxTokens") or generics.get("Positions")
    session = {"Batch": 1} if "Batch" in own.generics else {}
    if isinstance(most := own.generics.get("Capacity"), int):
        session["Capacity"] = min(most, limit or most)
    check = {name: min(size, limit) if name == "S" and limit else size for name, size in own.check.items()}
    bounds = {
        name: {"relative": one.relative}
        for name, one in own.tolerance.items()
        if name in known and one.relative
    }
    _check_tokens(repository, tables.get("generation", {}), generics.get("Vocab"))
    found: Tables = {
        "model": _model(repository, like, tables),
        "links": {} if repository.folder else {"huggingface": f"https://huggingface.co/{repository.repo}"},
        "source": {
            "path": owner_path(like, own.source.path),
            "root": form.root or own.source.root,
            "entry": form.entry or own.source.entry,
        },
        "generics": {**generics, **session},
        "check": check,
        "tolerance": bounds,
        "tiny": {name: value for name, value in own.tiny.items() if name in generics or name in session},
        **tables,
        "weights": weights_table(repository, tables, _bindings_path(like, binding)),
    }
    return {name: table for name, table in found.items() if table}


def entry_name(repository: Repository) -> str:
    """A name for the entry: the repository's own, without its owner."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", repository.repo.rpartition("/")[2])
    return name if re.match(r"[A-Za-z0-9]", name) else f"model{name}"


def owner_path(like: Entry, path: str) -> str:
    """A file of `like` as another entry names it."""
    return path if path.startswith("@") else f"@{like.name}/{path}"


def _bindings_path(like: Entry, binding: Binding) -> str:
    if binding.entry is None:
        return "bindings.json"
    from nest.registry import find

    owner = like if binding.entry == like.name else find(binding.entry)
    weights = owner.manifest.weights
    return owner_path(owner, weights.bindings if weights else "bindings.json")


def _model(repository: Repository, like: Entry, tables: Tables) -> dict[str, Any]:
    name = entry_name(repository)
    kind = tables.get("task", {}).get("kind")
    origin = "a folder of one machine" if repository.folder else repository.repo
    return {
        "name": name,
        "title": " ".join(word[:1].upper() + word[1:] for word in re.split(r"[-_]+", name)),
        "summary": f"A checkpoint of {origin} with the definition of {like.name}.",
        "license": _license(repository),
        "family": like.manifest.model.family,
        "tags": [kind or like.manifest.model.family],
    }


def _license(repository: Repository) -> str:
    """The licence that the repository's page states, as SPDX spells it; `NOASSERTION` where it states none."""
    if "README.md" not in repository.names:
        return "NOASSERTION"
    front = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", repository.text("README.md"), re.S)
    stated = (
        re.search(r"^license:[ \t]*['\"]?([A-Za-z0-9.+-]+)['\"]?[ \t]*$", front[1], re.M) if front else None
    )
    if stated is None or stated[1] in ("other", "unknown"):
        return "NOASSERTION"
    fault = license_fault(stated[1])
    if fault is None:
        return stated[1]
    spelt = re.search(r"SPDX spells it ([\w.-]+?)\.$", fault)
    return spelt[1] if spelt else f"LicenseRef-{re.sub(r'[^A-Za-z0-9.-]', '-', stated[1])}"


def _check_tokens(repository: Repository, generation: Mapping[str, Any], vocabulary: Any) -> None:
    """Tokens of decoding that the network does not have: tokenizer and weights are of different models."""
    for key, value in generation.items():
        tokens = (
            value if isinstance(value, list) else value.values() if isinstance(value, Mapping) else [value]
        )
        for token in tokens if key not in ("max_tokens", "alignment_heads") else ():
            if isinstance(vocabulary, int) and token >= vocabulary:
                raise AdoptionError(
                    f"{repository.name}: 'vocab_size' of config.json is {vocabulary}, and its other files have the "
                    f"token {token} ({key} of [generation]): they are not of one model."
                )


def weights_table(repository: Repository, tables: Tables, bindings: str) -> dict[str, Any]:
    """`[weights]`: every file that a load needs, and those that were read, with their pins."""
    named = [table["file"] for table in tables.values() if isinstance(table.get("file"), str)]
    needed = list(dict.fromkeys([*repository.weights, *named]))
    specs = [repository.pin(name) for name in needed]
    read = [repository.pin(name) for name in _READ if name in repository.names and name not in needed]
    revision = repository.revision or _content([*specs, *read])
    return {
        "repo": repository.repo,
        "revision": revision,
        "files": [*(_file(spec) for spec in specs), *({**_file(spec), "required": False} for spec in read)],
        "bindings": bindings,
        **({"directory": str(repository.folder)} if repository.folder else {}),
    }


def _content(specs: Iterable[FileSpec]) -> str:
    """In place of a commit, where there is none: 40 digits that are the same for the same files."""
    return hashlib.sha256("\n".join(f"{spec.name} {spec.sha256}" for spec in specs).encode()).hexdigest()[:40]


def _file(spec: FileSpec) -> dict[str, Any]:
    return {
        name: value
        for name, value in (("name", spec.name), ("size", spec.size), ("sha256", spec.sha256))
        if value
    }
