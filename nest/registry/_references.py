"""Rules between the tables of a manifest: what one names, another must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from nest.errors import UnknownEntryError
from nest.registry._toml import KeyPath
from nest.registry.manifest import Generation, Manifest, Weights

__all__ = ["check_references"]

Fault = tuple[KeyPath, str]


def check_references(manifest: Manifest, known: Callable[[str], object]) -> Iterator[Fault]:
    """(key, fault) of everything that is named and not there, or is there twice.

    Args:
        manifest: tables that are right by themselves.
        known: takes the name of an entry, and raises UnknownEntryError where there is none.
    """
    yield from _aliases(manifest)
    yield from _shared(manifest, known)
    if manifest.weights:
        yield from _files(manifest.weights)
    yield from _pinned(manifest)
    yield from _sizes(manifest)
    for name in manifest.tiny:
        if name not in manifest.generics:
            yield ("tiny", name), f"'{name}' is not one of the generics ({', '.join(manifest.generics)})"
    if manifest.generation:
        yield from _token_ids(manifest.generation, manifest.generics.get("Vocab"))


def _sizes(manifest: Manifest) -> Iterator[Fault]:
    """Generics, in capitals, are sizes and element types; static fields may be anything."""
    for table in ("generics", "tiny"):
        for name, value in getattr(manifest, table).items():
            if name[:1].isupper() and (isinstance(value, bool) or not isinstance(value, int | str)):
                yield (table, name), f"expected an integer or an element type such as 'f32'; came {value!r}"


def _aliases(manifest: Manifest) -> Iterator[Fault]:
    model = manifest.model
    for index, alias in enumerate(model.aliases):
        if alias == model.name or alias in model.aliases[:index]:
            yield ("model", "aliases", index), f"'{alias}' stands for this entry already"


def _shared(manifest: Manifest, known: Callable[[str], object]) -> Iterator[Fault]:
    bindings = manifest.weights.bindings if manifest.weights else ""
    for key, path in ((("source", "path"), manifest.source.path), (("weights", "bindings"), bindings)):
        if path.startswith("@"):
            try:
                known(path[1:].partition("/")[0])
            except UnknownEntryError as error:
                yield key, str(error)


def _files(weights: Weights) -> Iterator[Fault]:
    names = [spec.name for spec in weights.files]
    for index in _repeated(names):
        yield ("weights", "files", index, "name"), f"'{names[index]}' is listed twice"
    for number, mirror in enumerate(weights.mirror):
        replaced = [member.replaces for member in mirror.files]
        at: KeyPath = ("weights", "mirror", number, "files")
        for index, name in enumerate(replaced):
            if name not in names:
                yield (*at, index, "replaces"), f"'{name}' is not one of weights.files ({', '.join(names)})"
        for index in _repeated(replaced):
            yield (*at, index, "replaces"), f"'{replaced[index]}' is replaced twice"


def _pinned(manifest: Manifest) -> Iterator[Fault]:
    """Files that other tables name, and that are not among the pinned ones."""
    files = [spec.name for spec in manifest.weights.files] if manifest.weights else []
    tables = {"tokenizer": manifest.tokenizer, "labels": manifest.labels, "chat": manifest.chat}
    for table, name in ((key, value.file) for key, value in tables.items() if value):
        if name is not None and name not in files:
            yield (
                (table, "file"),
                f"'{name}' is not one of weights.files ({', '.join(files)}); every file is pinned",
            )
    if manifest.chat and (manifest.chat.file is None) == (manifest.chat.template is None):
        yield ("chat",), "expected either the 'file' that has the template, or the 'template' itself"


def _token_ids(generation: Generation, vocabulary: object) -> Iterator[Fault]:
    """Ids that the vocabulary does not have."""
    if not isinstance(vocabulary, int):
        return
    # Not dumped: a model of pydantic's is made ready for that by the first call, in some milliseconds.
    for name, value in generation:
        if name in ("max_tokens", "alignment_heads"):
            continue
        for key, token in _tokens(name, value):
            if token >= vocabulary:
                yield ("generation", *key), f"expected a token of Vocab = {vocabulary}; came {token}"


def _tokens(name: str, value: object) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(value, int):
        yield (name,), value
    elif isinstance(value, list):
        yield from (((name, index), token) for index, token in enumerate(value))
    elif isinstance(value, dict):
        yield from (((name, code), token) for code, token in value.items())


def _repeated(names: Iterable[str]) -> Iterator[int]:
    """The positions of names that stood before."""
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if seen[name]:
            yield index
        seen[name] += 1
