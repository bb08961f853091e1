"""Kinds of text and number in `nest.toml`, each checked in words that say what to write."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

__all__ = [
    "SHORT_FILE",
    "SHORT_NUMBER",
    "Commit",
    "EntryName",
    "EntryPath",
    "Fact",
    "IsoDate",
    "Line",
    "Package",
    "RelativePath",
    "Repository",
    "Sha256",
    "Size",
    "TokenId",
    "iso_date",
]

_LINE = r"(?=.*\S)[^\x00-\x1f\x7f-\x9f]+"
_COMMIT = r"[0-9a-f]{40}"
_DIGEST = r"[0-9a-f]{64}"
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9A-Za-z.!+_-]+"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_INSIDE = r"(?!/)(?!(.*/)?\.\.(/|$))[^\\:\x00-\x1f\x7f-\x9f]+"
_NO_PATH = r"[\\:\x00-\x1f\x7f-\x9f]"
_INSIDE_ENTRY = rf"(@{_NAME}/)?{_INSIDE}"


def _pattern(expression: str) -> Any:
    """What the published schema says of a text that a validator here checks in better words."""
    return Field(json_schema_extra={"pattern": f"^{expression}$"})


class Shorthand:
    """A value that may stand for a table: the published schema admits both."""

    def __init__(self, **schema: str) -> None:
        self._schema = schema

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [self._schema, handler(schema)]}


SHORT_FILE = Shorthand(type="string", pattern=f"^{_INSIDE}$")
SHORT_NUMBER = Shorthand(type="number")


def _line(value: str) -> str:
    # Cards are printed: a control character could rewrite what the terminal shows.
    if not value.isprintable() or not value.strip():
        raise ValueError(f"expected one line of printable text; came {value!r:.80}")
    return value


def _revision(value: str) -> str:
    if not re.fullmatch(_COMMIT, value):
        raise ValueError(
            f"expected the 40 hexadecimal digits of a commit; came '{value}'. A branch or a tag can be moved "
            f"to other files, so an entry pins the commit that its numbers were measured with"
        )
    return value


def _sha256(value: str) -> str:
    if not re.fullmatch(_DIGEST, value):
        raise ValueError(f"expected the 64 lowercase hexadecimal digits of a sha256; came '{value}'")
    return value


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if not path.parts or path.is_absolute() or ".." in path.parts or re.search(_NO_PATH, value):
        raise ValueError(f"expected a path inside its folder, with '/' and without '..'; came {value!r:.200}")
    return value


def _inside_entry(value: str) -> str:
    """A path inside this entry's folder, or `@entry/path` inside another's."""
    if not value.startswith("@"):
        return _inside(value)
    entry, slash, path = value[1:].partition("/")
    if not (entry and slash and path):
        raise ValueError(f"expected '@entry/path', a file of another entry; came '{value}'")
    _inside(entry)
    _inside(path)
    return value


def _pinned_package(value: str) -> str:
    if not re.fullmatch(_PACKAGE, value):
        raise ValueError(f"expected one version of one package, 'name==1.2.3'; came '{value}'")
    return value


def _entry_name(value: str) -> str:
    if not re.fullmatch(_NAME, value):
        raise ValueError(f"expected letters, digits, '.', '_' and '-'; came '{value}'")
    return value


def iso_date(value: str) -> str:
    """A date, with or without its time, as ISO 8601 writes it."""
    try:
        # fromisoformat takes shorter forms too; pages show the first ten characters.
        date.fromisoformat(value[:10] if re.match(r"\d{4}-\d\d-\d\d", value) else "")
        datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(
            f"expected an ISO date, such as '2026-11-30' or '2026-11-30T17:04:44+00:00'; came {value!r:.80}"
        ) from None
    return value


def _fact(value: Any) -> Any:
    """A definition's static fields are hashable: a list of the file is a tuple of the definition."""
    return tuple(map(_fact, value)) if isinstance(value, list) else value


_Number = int | Annotated[float, Field(allow_inf_nan=False)]
Fact = Annotated[
    bool | _Number | str | list[bool | _Number | str | list[bool | _Number | str]], AfterValidator(_fact)
]
"""The value of a generic (a size, an element type) or of a static field of the definition."""
Line = Annotated[str, AfterValidator(_line), _pattern(_LINE)]
IsoDate = Annotated[str, AfterValidator(iso_date)]
EntryName = Annotated[str, AfterValidator(_entry_name), _pattern(_NAME)]
Commit = Annotated[str, AfterValidator(_revision), _pattern(_COMMIT)]
Package = Annotated[str, AfterValidator(_pinned_package), _pattern(_PACKAGE)]
Repository = Annotated[str, Field(pattern=r"^\w[\w.-]*/\w[\w.-]*$")]
Sha256 = Annotated[str, AfterValidator(_sha256), _pattern(_DIGEST)]
RelativePath = Annotated[str, AfterValidator(_inside), _pattern(_INSIDE)]
EntryPath = Annotated[str, AfterValidator(_inside_entry), _pattern(_INSIDE_ENTRY)]
Size = Annotated[int, Field(ge=0)]
TokenId = Annotated[int, Field(ge=0)]
