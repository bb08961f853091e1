"""A copy of an entry at a small size whose pinned files are made up, so that a reader's code runs on it unchanged.

Everything on the way is nest's own: the copy's manifest pins the made-up files by digest, they lie at the pinned commit
in a Hub cache, and weights are bound from tensors named as the publisher names them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import nest
from nest.checking.readme import snippets
from nest.registry import Entry, find, zoo, zoo_directory
from nest.weights import open_checkpoint
from nest.weights.writer import write_safetensors

Json = Mapping[str, Any]


def python_of(name: str) -> list[str]:
    """The snippets of Python in an entry's README, in order."""
    text = (zoo_directory() / name / "README.md").read_text("utf-8")
    return [snippet.code for snippet in snippets(text) if snippet.language == "python"]


def run(sources: Iterable[str]) -> dict[str, Any]:
    """All of a page's snippets, one after another, as a reader would; the names that they leave."""
    names: dict[str, Any] = {}
    for source in sources:
        exec(compile(source, "README.md", "exec"), names)
    return names


def small_entry(
    name: str,
    generics: Json,
    files: Mapping[str, Json | str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    facts: Json | None = None,
    seed: int = 3,
) -> Entry:
    """Put the small copy of an entry in the zoo's place, for the rest of a test, and return it.

    Args:
        name: of the entry.
        generics: those that are smaller in the copy.
        files: the pinned files beside the weights, by name; a mapping is written as JSON.
        facts: other keys of the manifest that the smaller size needs otherwise, of any table.
        folder: an empty place. seed: of the weights.
    """
    copied, hub = folder / "zoo", folder / "hub"
    _copy(name, {**generics, **(facts or {})}, copied)
    monkeypatch.setattr(zoo, "zoo_directory", lambda: copied)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    monkeypatch.setenv("NEST_CACHE", str(folder / "nest-cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("NEST_ZOO", "")
    entry = find(name)
    weights = entry.manifest.weights
    assert weights is not None
    snapshot = hub / f"models--{weights.repo.replace('/', '--')}" / "snapshots" / weights.revision
    snapshot.mkdir(parents=True)
    _write_weights(entry, snapshot, folder / "saved", seed)
    for file, content in files.items():
        path = snapshot / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    _pin(copied / name / "nest.toml", snapshot)
    return find(name)


def _copy(name: str, changed: Json, folder: Path) -> None:
    """The entry and those whose files it shares; the committed list of tensors is of the full size."""
    manifest = find(name).manifest
    shared = [manifest.source.path, manifest.weights.bindings if manifest.weights else ""]
    owners = {name, *(path[1:].partition("/")[0] for path in shared if path.startswith("@"))}
    for owner in owners:
        ignored = shutil.ignore_patterns("__pycache__", "tensors.json")
        shutil.copytree(zoo_directory() / owner, folder / owner, ignore=ignored)
    file = folder / name / "nest.toml"
    head, table, rest = file.read_text("utf-8").partition("[generics]\n")
    for key, value in changed.items():
        line = f"{key} = {json.dumps(value)}"
        rest, found = re.subn(
            rf"^{key} = (?:\[$.*?^\]$|.*?$)", lambda _, line=line: line, rest, count=1, flags=re.M | re.S
        )
        assert found, f"'{key}' is no key of {name}"
    file.write_text(head + table + rest, "utf-8")


def _write_weights(entry: Entry, snapshot: Path, saved: Path, seed: int) -> None:
    """Random weights under the publisher's names, in the files that the entry pins."""
    model = nest.load(entry, backend="reference", weights=None, seed=seed)
    nest.save(model, saved, format="hf")
    weights = entry.manifest.weights
    assert weights is not None
    names = [spec.name for spec in weights.files if spec.name.endswith(".safetensors")]
    checkpoint = open_checkpoint([saved / "model.safetensors"])
    tensors = list(checkpoint.keys())
    for position, name in enumerate(names):
        specs = {tensor: checkpoint[tensor].spec for tensor in tensors[position :: len(names)]}
        write_safetensors(snapshot / name, specs, lambda tensor: checkpoint[tensor].array())


def _pin(manifest: Path, snapshot: Path) -> None:
    """Give the copied manifest the digests and sizes of the files that were made."""
    head, table, rest = manifest.read_text("utf-8").partition("\nfiles = [")
    listed, end, rest = rest.partition("]\n")
    for path in (file for file in snapshot.rglob("*") if file.is_file()):
        name = path.relative_to(snapshot).as_posix()
        digest, size = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
        pinned = f'{{ name = "{name}", size = {size}, sha256 = "{digest}" }}'
        quoted = re.escape(name)
        listed = re.sub(rf'\{{ name = "{quoted}"[^}}]*\}}|(?<!name = )"{quoted}"', pinned, listed)
    manifest.write_text(head + table + listed + end + rest, "utf-8")


def byte_level_tokenizer(size: int, special: Mapping[str, int] | None = None) -> dict[str, Any]:
    """A byte-level BPE vocabulary without merges: the 256 bytes, then made-up words, and tokens of their own ids.

    Args:
        size: how many ids there are, those of `special` aside where they are higher.
        special: control tokens and their ids.
    """
    reserved = set((special or {}).values())
    names = itertools.chain(_byte_letters(), _words())
    ids = (token for token in itertools.count() if token not in reserved)
    vocabulary = dict(
        zip(itertools.islice(names, size - len([i for i in reserved if i < size])), ids, strict=False)
    )
    added = [
        {
            "id": token, "content": text, "special": True, "normalized": False, "single_word": False,
            "lstrip": False, "rstrip": False,
        }
        for text, token in (special or {}).items()
    ]  # fmt: skip
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary | dict(special or {}), "merges": []},
    }


def _byte_letters() -> list[str]:
    """How byte-level vocabularies write the 256 bytes: printable ones as they are, others from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = (chr(0x100 + n) for n in itertools.count())
    return [chr(byte) if byte in plain else next(moved) for byte in range(256)]


def _words() -> Iterable[str]:
    return (
        "".join(letters) for n in itertools.count(2) for letters in itertools.product("abcdefgh", repeat=n)
    )
