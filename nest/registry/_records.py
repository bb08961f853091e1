"""Files of measurements beside an entry: read with every fault at once, written whole, one row a line."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from nest.errors import InputError
from nest.registry._faults import Faults
from nest.registry._json import json_lines
from nest.registry._reading import parse_json, read_text

__all__ = ["by_lines", "check_replaceable", "list_faults", "read_list", "replace_file"]

Read = TypeVar("Read", bound=pydantic.BaseModel)


def read_list(file: Path, entry: str, model: type[Read]) -> list[Read]:
    """The items of a JSON list; none where there is no such file.

    Raises:
        ManifestError: the file is no list of such items; says all that is wrong with it, with file, line and key.
    """
    faults = Faults(entry)
    found = list_faults(file, faults, model)
    faults.check()
    return found


def list_faults(file: Path, faults: Faults, model: type[Read]) -> list[Read]:
    """The items that are right; what is wrong is recorded."""
    if not file.exists():
        return []
    text = read_text(file, faults)
    data = None if text is None else parse_json(file, text, faults)
    if text is None or data is None:
        return []
    if not isinstance(data, list):
        faults.add(file, f"expected a list of runs; came {_kind(data)}", lines={(): 1})
        return []
    found = []
    for index, item in enumerate(data):
        try:
            found.append(model.model_validate(item))
        except pydantic.ValidationError as error:
            faults.add_validation(file, error, model, json_lines(text), prefix=(index,))
    return found


def by_lines(items: Sequence[dict[str, Any]], rows: str) -> str:
    """A list as JSON: a line for each key of an item, and for each row of the list that `rows` names.

    So a change of one measurement is a change of one line.
    """
    return "[" + ",".join(f"\n{_item(item, rows)}" for item in items) + "\n]\n"


def _item(item: dict[str, Any], rows: str) -> str:
    lines = [
        f"  {json.dumps(key)}: {_rows(value) if key == rows else _compact(value)}"
        for key, value in item.items()
    ]
    return " {\n" + ",\n".join(lines) + "\n }"


def _rows(rows: Sequence[Any]) -> str:
    return "[" + ",".join(f"\n   {_compact(row)}" for row in rows) + "\n  ]"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def replace_file(file: Path, text: str) -> None:
    """Write a file under another name and move it, so that nothing half-written is ever found.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    temporary = _beside(file)
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(file: Path) -> None:
    """Whether `replace_file` could write a file, found out by writing an empty one beside it.

    Raises:
        InputError: it cannot be written; names the file.
    """
    temporary = _beside(file)
    try:
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror or error}. Leave --save out, or measure a copy of the "
            f"entry's folder that you may write to."
        ) from error


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}.part")


def _kind(value: Any) -> str:
    return {dict: "an object", str: "a text", bool: "a truth value"}.get(type(value), "a number")
