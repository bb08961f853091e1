"""Faults of an entry's files, collected and reported together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pydantic
from pydantic_core import ErrorDetails

from nest._suggest import did_you_mean
from nest.errors import ManifestError
from nest.registry._toml import KeyPath, path_text

__all__ = ["Fault", "Faults"]


@dataclass(frozen=True)
class Fault:
    """One thing wrong in one file: where, and what was expected and came."""

    file: Path
    message: str
    path: KeyPath = ()
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}" + (f":{self.line}" if self.line else "")
        key = f", '{path_text(self.path)}'" if self.path else ""
        return f"{place}{key}: {self.message}"


@dataclass
class Faults:
    """The faults of one entry; `check` raises them all as one error."""

    entry: str
    found: list[Fault] = field(default_factory=list)

    def add(
        self, file: Path, message: str, path: KeyPath = (), lines: Mapping[KeyPath, int] | None = None
    ) -> None:
        """Record a fault at the line of `path`, or of the nearest table around it that has one."""
        self.found.append(Fault(file, message, path, _line_of(path, lines or {})))

    def add_validation(
        self,
        file: Path,
        error: pydantic.ValidationError,
        model: type[pydantic.BaseModel],
        lines: Mapping[KeyPath, int] | None = None,
        prefix: KeyPath = (),
    ) -> None:
        """Record everything that pydantic found wrong, in nest's words."""
        for detail in error.errors(include_url=False):
            # Pydantic adds the tried type to the path of a union's member; those are no keys of the file.
            path = tuple(part for part in detail["loc"] if not _names_a_type(part))
            self.add(file, _sentence(detail, model, path), (*prefix, *path), lines)

    def check(self) -> None:
        """Raise every fault found so far.

        Raises:
            ManifestError: there is at least one.
        """
        if not self.found:
            return
        if len(self.found) == 1:
            raise ManifestError(f"Entry '{self.entry}' is not valid. {self.found[0]}")
        listed = "".join(f"\n  {fault}" for fault in self.found)
        raise ManifestError(f"Entry '{self.entry}' is not valid: {len(self.found)} faults.{listed}")


def _names_a_type(part: str | int) -> bool:
    return part in ("str", "int", "float", "bool")


def _line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _sentence(detail: ErrorDetails, model: type[pydantic.BaseModel], path: KeyPath) -> str:
    kind, came = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        known = sorted(_model_at(model, path[:-1]).model_fields)
        hint = did_you_mean(str(path[-1]), known) or f" Known here: {', '.join(known)}."
        return f"unknown key.{hint}"
    if kind == "missing":
        return "missing; it is required"
    message = detail["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return message
    return f"{message[0].lower()}{message[1:]}; came {_short(came)}"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of very many digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _model_at(model: type[pydantic.BaseModel], path: KeyPath) -> type[pydantic.BaseModel]:
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            inner = _inner_model(model.model_fields[part].annotation)
            if inner is None:
                break
            model = inner
    return model


def _inner_model(annotation: Any) -> type[pydantic.BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    for argument in get_args(annotation):
        if (inner := _inner_model(argument)) is not None:
            return inner
    return None
