"""A manifest as a zoo wants it: everything pinned, everything said, names like the others' names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nest.checking._licenses import license_fault
from nest.registry import Card, Entry, Manifest, Weights, cards
from nest.weights.converters import CONVERTERS

__all__ = ["manifest_faults"]

_WORDS = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_GENERIC = re.compile(r"[A-Z][A-Za-z0-9]*|[a-z][a-z0-9_]*")
_TABLES = {
    "weights": "the checkpoint and its pins",
    "task": "what the model is for",
    "check": "the numbers of a call that nest check binds",
    "tolerance": "how far its outputs may be from the reference library's",
    "tiny": "the small configuration that backends are compared on",
}


def manifest_faults(entry: Entry) -> Iterator[str]:
    """What a valid manifest still lacks."""
    manifest = entry.manifest
    for table, purpose in _TABLES.items():
        if not getattr(manifest, table):
            yield f"[{table}] is missing: {purpose}"
    if manifest.weights:
        yield from _weights(manifest.weights, manifest.links.get("huggingface"))
    yield from _heading(manifest)
    yield from _names(entry, cards()[0])
    yield from _tiny(manifest)


def _weights(weights: Weights, link: str | None) -> Iterator[str]:
    for spec in weights.files:
        lacking = [name for name in ("sha256", "size") if getattr(spec, name) is None]
        if lacking and spec.required and spec.no_digest is None:
            yield f"weights.files: '{spec.name}' has no {' and no '.join(lacking)}: a load could not tell other bytes"
        if spec.no_digest is not None and not lacking:
            yield f"weights.files: '{spec.name}' has a sha256, and no_digest says why there is none"
    if weights.directory is not None:
        yield f"weights.directory: only this machine has {weights.directory}; publish the files, and pin the repository"
        return
    if link != (wanted := f"https://huggingface.co/{weights.repo}"):
        yield f"links.huggingface: expected {wanted}; came {link}"
    for mirror in weights.mirror:
        if fault := license_fault(mirror.license):
            yield f"weights.mirror: license of {mirror.package}: {fault}"
        for member in mirror.files:
            if member.converter not in (None, *CONVERTERS):
                yield f"weights.mirror: '{member.converter}' is no converter; there are: {', '.join(CONVERTERS)}"


def _heading(manifest: Manifest) -> Iterator[str]:
    model = manifest.model
    if not model.summary.endswith("."):
        yield "model.summary: expected a sentence that ends with a full stop"
    if model.title == model.name:
        yield "model.title: expected the name as people write it; came the entry's name"
    if fault := license_fault(model.license):
        yield f"model.license: {fault}"
    if not model.tags:
        yield "model.tags: expected at least one: nest list is searched by them"


def _names(entry: Entry, known: list[Card]) -> Iterator[str]:
    model, manifest = entry.manifest.model, entry.manifest
    if model.name != entry.directory.name:
        yield f"model.name: expected the name of its folder, '{entry.directory.name}'; came '{model.name}'"
    words = [("model.family", model.family), *(("model.tags", tag) for tag in model.tags)]
    if manifest.task:
        words += [("task.kind", manifest.task.kind), *(("task.also", kind) for kind in manifest.task.also)]
    for key, word in words:
        if not _WORDS.fullmatch(word):
            yield f"{key}: expected lowercase words joined by '-'; came '{word}'"
    if len(set(model.tags)) < len(model.tags):
        yield "model.tags: one of them stands twice"
    for name in (*manifest.generics, *manifest.check):
        if not _GENERIC.fullmatch(name):
            yield f"'{name}' is spelled like no generic ('Heads') and no static field ('rope_theta')"
    others = [card for card in known if card.name != model.name]
    for card in others:
        if card.name.lower() == model.name.lower():
            yield f"model.name: '{card.name}' differs in capitals alone, which not every disk tells apart"
    for alias in model.aliases:
        owners = [card.name for card in others if alias == card.name or alias in card.aliases]
        if owners:
            yield f"model.aliases: '{alias}' means {' and '.join(owners)} already"


def _tiny(manifest: Manifest) -> Iterator[str]:
    """Two axes of one size hide a swap of the two."""
    sizes: dict[int, str] = {}
    for name, size in manifest.tiny.items():
        if isinstance(size, int) and not isinstance(size, bool) and name[0].isupper():
            if size in sizes:
                yield f"[tiny]: {sizes[size]} and {name} are both {size}, so that a swap of the two would not show"
            sizes[size] = name
