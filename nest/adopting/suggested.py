"""Suggestions for an entry, from its definition and its checkpoint's tensors, and writing what is certain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nest.adopting.suggest import Suggestions, suggest
from nest.checking.headers import UnseenError
from nest.checking.tensors import Checkpoints
from nest.errors import CallError, WeightsError
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.registry import Entry
from nest.weights._files import atomic

__all__ = ["suggestions_for", "write_certain"]


def suggestions_for(
    entry: Entry, *, trust_source: bool = False, checkpoints: Checkpoints | None = None
) -> Suggestions:
    """Propose bindings for all parameters of an entry, whatever its `bindings.json` has.

    Raises:
        ManifestError, DefinitionError: the definition is not trusted, or wrong.
        WeightsError: neither the checkpoint's header nor a list of its tensors can be had.
    """
    program = program_of(entry, trust_source=trust_source or None)
    if entry.manifest.weights is None:
        raise WeightsError(f"'{entry.name}' has no checkpoint to bind: its nest.toml has no [weights].")
    try:
        tensors = (checkpoints or Checkpoints()).tensors(entry)
    except UnseenError as error:
        raise WeightsError(f"The tensors of '{entry.name}' cannot be known: {error}.") from error
    return suggest(parameters(program), tensors.specs)


def write_certain(entry: Entry, found: Suggestions) -> list[str]:
    """Put what is certain into the entry's `bindings.json`, where no rule binds the parameter yet; the paths added.

    Raises:
        CallError: the entry has another's bindings, or the file cannot be written.
    """
    named = entry.manifest.weights.bindings if entry.manifest.weights else "bindings.json"
    if named.startswith("@"):
        raise CallError(
            f"'{entry.name}' has the bindings of another entry ({named}), which are not to be changed here."
        )
    file = entry.directory / named
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    rules: dict[str, Any] = content["bindings"] if isinstance(content.get("bindings"), Mapping) else content
    added = {
        one.path: one.value
        for one in found.proposals
        if one.confidence == "certain"
        and not any(rule.match(param) is not None for rule in entry.bindings.rules for param in one.params)
    }
    rules |= added
    try:
        with atomic(file) as written:
            written.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise CallError(f"{file} cannot be written: {error.strerror or error}.") from error
    return list(added)
