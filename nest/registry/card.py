"""Headings of entries, read without checking the rest: what finding and listing need.

`nest list` answers while a person still looks at the prompt, and pydantic alone would take longer than that. So
this module reads the few keys that it needs, and leaves faults elsewhere in the entry to those who open it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nest.registry._text import entry_text

__all__ = ["Card", "CardError", "read_card"]

_WANTED = re.compile(r"\[\s*(model|task|weights)\s*\]")


@dataclass(frozen=True)
class Card:
    """The heading of one entry.

    `also` are kinds of task beside `task`. `size` is the bytes of what a load needs, None where nobody
    knows; not `size_exact` where it is that of the tensors, or lacks a file's.
    """

    name: str
    folder: Path
    trusted: bool
    title: str
    summary: str
    license: str
    family: str
    task: str | None
    also: tuple[str, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    repo: str | None
    size: int | None
    size_exact: bool


class CardError(Exception):
    """The heading cannot be read; the message says why."""


def read_card(folder: Path, *, trusted: bool) -> Card:
    """The heading of the entry in `folder`.

    Raises:
        CardError: `nest.toml` cannot be read, or a key of the heading is not there.
    """
    file = folder / "nest.toml"
    try:
        tables = _heading_tables(entry_text(file))
    except OSError as error:
        raise CardError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CardError(f"{file} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"{file} is not valid TOML: {error}") from error
    except ValueError as error:
        raise CardError(f"{file} is not valid TOML: a number has too many digits") from error
    except RecursionError as error:
        raise CardError(f"{file} is not valid TOML: nested too deeply") from error
    model, weights = _table(file, tables, "model"), _table(file, tables, "weights")
    words = {key: _text(file, model, key) for key in ("name", "title", "summary", "license", "family")}
    if words["name"] != folder.name:
        raise CardError(f"{file}, 'model.name': expected the name of its folder; came '{words['name']}'")
    kinds, repo = _table(file, tables, "task"), weights.get("repo")
    task = kinds.get("kind")
    size, exact = _size(weights.get("files"), weights.get("tensor_bytes"))
    return Card(
        folder=folder,
        trusted=trusted,
        task=task if isinstance(task, str) and task.isprintable() else None,
        also=_texts(kinds.get("also")),
        tags=_texts(model.get("tags")),
        aliases=_texts(model.get("aliases")),
        repo=repo if isinstance(repo, str) and repo.isprintable() else None,
        size=size,
        size_exact=exact,
        **words,
    )


def _heading_tables(text: str) -> dict[str, Any]:
    """The tables that a heading is in. The others, with their long lists of tokens, take most of the time to parse.

    Raises:
        tomllib.TOMLDecodeError: the text is not TOML.
    """
    parts = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    kept = [part for part in parts if not part.startswith("[") or _WANTED.match(part)]
    try:
        tables = tomllib.loads("".join(kept))
    except ValueError:
        tables = {}  # a bracket at the start of a line was no table's
    return tables if "model" in tables else tomllib.loads(text)


def _table(file: Path, tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise CardError(f"{file}, '{name}': expected a table")
    return table


def _text(file: Path, model: Mapping[str, Any], key: str) -> str:
    value = model.get(key)
    # As the manifest demands it: a card is printed as it stands.
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise CardError(f"{file}, 'model.{key}': expected one line of text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str) and item.isprintable())


def _size(files: Any, tensor_bytes: Any) -> tuple[int | None, bool]:
    """Bytes of the files that a load needs, and whether they are exact; None where the checkpoint's are not known."""
    if not isinstance(files, list):
        return None, False
    needed = [item for item in files if not _is_optional(item)]
    sizes = [item.get("size") if isinstance(item, dict) else None for item in needed]
    known = [size for size in sizes if type(size) is int and size >= 0]
    total = sum(known) if known else None
    if any(size is None and _is_checkpoint(item) for item, size in zip(needed, sizes, strict=True)):
        total = (total or 0) + tensor_bytes if type(tensor_bytes) is int and tensor_bytes >= 0 else None
    return total, len(known) == len(needed)


def _is_checkpoint(item: Any) -> bool:
    name = item.get("name") if isinstance(item, dict) else item
    return isinstance(name, str) and name.endswith(".safetensors")


def _is_optional(item: Any) -> bool:
    return isinstance(item, dict) and item.get("required") is False
