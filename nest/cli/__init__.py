"""The command line: `nest run`, `pull`, `list`, `show`, `inspect`, `check`, `lint`. See `nest --help`."""

from __future__ import annotations

from nest.cli._main import main

__all__ = ["main"]
