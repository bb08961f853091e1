"""One configuration file, checked: every fault at once, with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict

from nest.errors import ConfigError
from nest.registry._faults import Faults
from nest.registry._toml import key_lines
from nest.weights.source import Kind, without_password

__all__ = ["SiteFile", "parse_site_file"]

_PLACES = ("{repo}", "{revision}", "{file}")


@dataclass(frozen=True)
class SiteFile:
    """What one file sets; None where it says nothing. Mirrors are (url, directory), one of them None."""

    sources: tuple[Kind, ...] | None
    require_hashes: bool
    licenses: tuple[str, ...] | None
    mirrors: tuple[tuple[str | None, str | None], ...]


def parse_site_file(path: Path, text: str, data: dict[str, Any]) -> SiteFile:
    """The settings of a parsed TOML file.

    Raises:
        ConfigError: lists every fault, with line and key.
    """
    faults = Faults(str(path))
    lines = key_lines(text)
    try:
        file = _File.model_validate(data)
    except pydantic.ValidationError as error:
        faults.add_validation(path, error, _File, lines)
        listed = "".join(f"\n  {fault}" for fault in faults.found)
        raise ConfigError(f"The configuration {path} is not valid:{listed}") from None
    return SiteFile(
        sources=None if file.sources is None else tuple(dict.fromkeys(file.sources)),
        require_hashes=file.require_hashes,
        licenses=None if file.licenses is None else tuple(file.licenses),
        mirrors=tuple((mirror.url, mirror.directory) for mirror in file.mirror),
    )


def _template(value: str) -> str:
    missing = [place for place in _PLACES if place not in value]
    if missing:
        raise ValueError(f"expected a URL with {', '.join(_PLACES)}; {', '.join(missing)} is missing")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"expected an http or https URL; came '{without_password(value)}'")
    if not parts.hostname or "{" in parts.netloc or (parts.port or 0) < 0:
        raise ValueError("expected a URL with a host, which is no place to fill in")
    if parts.fragment or not value.isprintable() or " " in value:
        raise ValueError("expected a URL without spaces and without a '#' part")
    if unknown := [found for found in re.findall(r"\{[^}]*\}?|\}", value) if found not in _PLACES]:
        raise ValueError(f"expected a URL with {', '.join(_PLACES)} and no other braces; came {unknown[0]}")
    return value


class _Table(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, strict=True)


class _Mirror(_Table):
    url: Annotated[str, AfterValidator(_template)] | None = None
    directory: str | None = None

    @pydantic.model_validator(mode="after")
    def _one_of_both(self) -> _Mirror:
        if (self.url is None) == (self.directory is None):
            raise ValueError("expected a mirror with either 'url' or 'directory'")
        return self


class _File(_Table):
    sources: list[Kind] | None = None
    require_hashes: bool = False
    licenses: list[str] | None = None
    mirror: list[_Mirror] = []
