"""Reading the files of an entry: bytes to checked data, with a line for every fault."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pydantic

from nest.registry._faults import Faults
from nest.registry._toml import KeyPath, key_lines
from nest.registry.bindings import Bindings, parse_bindings
from nest.registry.manifest import Manifest
from nest.registry.samples import Sample, as_list

__all__ = ["read_bindings", "read_manifest", "read_samples"]


def read_manifest(file: Path, faults: Faults) -> Manifest | None:
    """`nest.toml` as a Manifest; None where a fault was recorded."""
    text = _read_text(file, faults)
    if text is None:
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        faults.add(file, f"not valid TOML: {error}", lines=_toml_error_line(str(error)))
        return None
    lines = key_lines(text)
    try:
        manifest = Manifest.model_validate(data)
    except pydantic.ValidationError as error:
        faults.add_validation(file, error, Manifest, lines)
        return None
    before = len(faults.found)
    _check_references(manifest, file, faults, lines)
    return manifest if len(faults.found) == before else None


def read_bindings(file: Path, faults: Faults) -> Bindings | None:
    """`bindings.json`; None where a fault was recorded."""
    text = _read_text(file, faults)
    data = None if text is None else _parse_json(file, text, faults)
    if text is None or data is None:
        return None
    bindings, found = parse_bindings(data)
    for key, fault in found:
        faults.add(file, fault, (key,) if key else (), _json_line(text, key))
    return None if found else bindings


def read_samples(file: Path, faults: Faults) -> list[Sample]:
    """`samples.json`; an entry without one has no samples."""
    if not file.is_file():
        return []
    text = _read_text(file, faults)
    data = None if text is None else _parse_json(file, text, faults)
    samples = []
    for index, item in enumerate([] if data is None else as_list(data)):
        try:
            samples.append(Sample.model_validate(item))
        except pydantic.ValidationError as error:
            faults.add_validation(file, error, Sample, prefix=(index,) if isinstance(data, list) else ())
    return samples


def _read_text(file: Path, faults: Faults) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        faults.add(file, "the file is missing")
    except UnicodeDecodeError as error:
        faults.add(file, f"not UTF-8 text: {error.reason} at byte {error.start}")
    except OSError as error:
        faults.add(file, f"cannot be read: {error.strerror or error}")
    return None


def _parse_json(file: Path, text: str, faults: Faults) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in (
            sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ()
        ):
            faults.add(file, "the key stands twice in one object", (name,), _json_line(text, name))
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        faults.add(file, f"not valid JSON: {error.msg}", lines={(): error.lineno})
    except RecursionError:
        faults.add(file, "not valid JSON: nested too deeply")
    return None


def _check_references(manifest: Manifest, file: Path, faults: Faults, lines: dict[KeyPath, int]) -> None:
    """Faults between tables: files and generics that are named and not there."""
    files = [spec.name for spec in manifest.weights.files] if manifest.weights else []
    known_files = ", ".join(files)
    if manifest.tokenizer and manifest.tokenizer.file not in files:
        faults.add(
            file,
            f"'{manifest.tokenizer.file}' is not one of weights.files ({known_files}); every file is pinned",
            ("tokenizer", "file"),
            lines,
        )
    for number, mirror in enumerate(manifest.weights.mirror if manifest.weights else ()):
        for index, member in enumerate(mirror.files):
            if member.replaces not in files:
                path: KeyPath = ("weights", "mirror", number, "files", index, "replaces")
                faults.add(
                    file, f"'{member.replaces}' is not one of weights.files ({', '.join(files)})", path, lines
                )
    for name in manifest.tiny:
        if name not in manifest.generics:
            known = ", ".join(manifest.generics)
            faults.add(file, f"'{name}' is not one of the generics ({known})", ("tiny", name), lines)


def _json_line(text: str, key: str) -> dict[KeyPath, int]:
    found = re.search(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    return {(key,): text.count("\n", 0, found.start()) + 1} if found else {}


def _toml_error_line(message: str) -> dict[KeyPath, int]:
    found = re.search(r"at line (\d+)", message)
    return {(): int(found.group(1))} if found else {}
