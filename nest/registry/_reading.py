"""Reading the files of an entry: bytes to checked data, with a line for every fault."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic

from nest.registry._faults import Faults
from nest.registry._json import json_lines
from nest.registry._references import check_references
from nest.registry._text import entry_text
from nest.registry._toml import KeyPath, key_lines
from nest.registry.bindings import Bindings, parse_bindings
from nest.registry.manifest import Manifest
from nest.registry.samples import Sample, as_list

__all__ = ["parse_json", "read_bindings", "read_manifest", "read_samples", "read_text"]


def read_manifest(
    file: Path, faults: Faults, *, known: Callable[[str], object], name: str | None
) -> Manifest | None:
    """`nest.toml` as a Manifest; None where a fault was recorded.

    Args:
        file: the file.
        faults: where everything wrong is recorded.
        known: takes the name of another entry, and raises UnknownEntryError where there is none.
        name: what the entry must be called; anything where None.
    """
    text = read_text(file, faults)
    if text is None:
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        faults.add(file, f"not valid TOML: {error}", lines=_toml_error_line(str(error)))
        return None
    except (RecursionError, ValueError) as error:
        faults.add(file, f"not valid TOML: {_beyond(error)}")
        return None
    before = len(faults.found)
    try:
        manifest = Manifest.model_validate(data)
    except pydantic.ValidationError as error:
        faults.add_validation(file, error, Manifest, key_lines(text))
        return None
    # Lines are looked for where there is a fault, since every load reads a manifest.
    for path, message in check_references(manifest, known):
        faults.add(file, message, path, key_lines(text))
    if name not in (None, manifest.model.name):
        message = f"expected the name of its folder, '{name}'; came '{manifest.model.name}'"
        faults.add(file, message, ("model", "name"), key_lines(text))
    return manifest if len(faults.found) == before else None


def read_bindings(file: Path, faults: Faults) -> Bindings | None:
    """`bindings.json`; None where a fault was recorded."""
    text = read_text(file, faults)
    data = None if text is None else parse_json(file, text, faults)
    if text is None or data is None:
        return None
    bindings, found = parse_bindings(data)
    lines = _last_key_lines(text) if found else {}
    for key, fault in found:
        faults.add(file, fault, (key,) if key else (), lines)
    return None if found else bindings


def read_samples(file: Path, faults: Faults) -> list[Sample]:
    """`samples.json`; an entry without one has no samples."""
    if not file.exists():
        return []
    text = read_text(file, faults)
    data = None if text is None else parse_json(file, text, faults)
    samples = []
    for index, item in enumerate([] if data is None else as_list(data)):
        try:
            samples.append(Sample.model_validate(item))
        except pydantic.ValidationError as error:
            place = (index,) if isinstance(data, list) else ()
            faults.add_validation(file, error, Sample, json_lines(text or ""), prefix=place)
    return samples


def read_text(file: Path, faults: Faults) -> str | None:
    """The file's text; None where a fault was recorded."""
    try:
        text = entry_text(file)
        if not text.startswith("\ufeff"):
            return text
        faults.add(file, "it begins with a byte order mark; save it as UTF-8 without one", lines={(): 1})
    except FileNotFoundError:
        faults.add(file, "the file is missing")
    except UnicodeDecodeError as error:
        faults.add(file, f"not UTF-8 text: {error.reason} at byte {error.start}")
    except OSError as error:
        faults.add(file, f"cannot be read: {error.strerror or error}")
    return None


def parse_json(file: Path, text: str, faults: Faults) -> Any:
    """The value of a JSON text, each key once in its object; None where it is no JSON."""
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        repeated.extend(name for name, count in names.items() if count > 1)
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        faults.add(file, f"not valid JSON: {error.msg}", lines={(): error.lineno})
        return None
    except (RecursionError, ValueError) as error:
        faults.add(file, f"not valid JSON: {_beyond(error)}")
        return None
    if data is None:
        faults.add(file, "expected an object or a list; came null")
    for name in repeated:
        faults.add(file, "the key stands twice in one object", (name,), _last_key_lines(text))
    return data


def _beyond(error: RecursionError | ValueError) -> str:
    """What the grammar allows and Python's parsers do not."""
    return "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def _last_key_lines(text: str) -> dict[KeyPath, int]:
    """Lines by key alone, for faults that name no path."""
    return {path[-1:]: line for path, line in json_lines(text).items()}


def _toml_error_line(message: str) -> dict[KeyPath, int]:
    found = re.search(r"at line (\d+)", message)
    return {(): int(found.group(1))} if found else {}
