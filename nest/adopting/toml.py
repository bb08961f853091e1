"""TOML of plain tables: texts, numbers, lists, tables; as the manifests of the zoo are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["toml_text"]

_WIDTH = 110


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """A document of the given tables, in their order. Mappings in a table become inline tables, or tables if large."""
    return "\n".join(text for name, table in tables.items() for text in _table((name,), table))


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    own: dict[str, Any] = {}
    under: dict[str, Any] = {}
    for key, value in table.items():
        (under if isinstance(value, Mapping) and len(value) > 6 else own)[key] = value
    lines = [
        f"[{'.'.join(map(_key, path))}]",
        *(f"{_key(key)} = {_value(value)}" for key, value in own.items()),
    ]
    yield "\n".join(lines) + "\n"
    for key, value in under.items():
        yield from _table((*path, key), value)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return _list([_value(one) for one in value], spread=bool(value) and isinstance(value[0], Mapping))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return _text(value) if isinstance(value, str) else str(value)


def _list(items: list[str], *, spread: bool) -> str:
    whole = f"[{', '.join(items)}]"
    if spread:
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    if len(whole) <= _WIDTH - 20:
        return whole
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 6 > _WIDTH:
            lines.append(line)
            line = ""
        line += f" {item}," if line else f"    {item},"
    return "[\n" + "\n".join([*lines, line]) + "\n]"


def _text(value: str) -> str:
    """A basic string; JSON's escapes are TOML's, but for the control characters that JSON lets stand."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    bare = name and all(char.isascii() and (char.isalnum() or char in "_-") for char in name)
    return name if bare else _text(name)
