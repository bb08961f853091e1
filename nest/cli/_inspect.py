"""`nest inspect`: a definition's entries, generics and blocks; its program; its generated source."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from nest.cli._definition import definition_facts
from nest.cli._format import json_text
from nest.errors import CallError
from nest.ir import Program, inspect_text, program_text
from nest.loading import program_of
from nest.registry import find

__all__ = ["generics_of", "main"]


def main(args: argparse.Namespace) -> int:
    entry = find(args.name)
    program = program_of(entry, trust_source=args.trust_source or None, **generics_of(args.generics))
    print(_writer(args)(program).rstrip("\n"))
    return 0


def generics_of(given: list[str]) -> dict[str, Any]:
    """`["D=512", "T=f16", "eps=1e-6"]` as keyword arguments.

    Raises:
        CallError: one of them is not NAME=VALUE.
    """
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name.isidentifier() and equals and value):
            raise CallError(f"-D takes NAME=VALUE, such as -D D=512; '{text}' came.")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    """A number, true or false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _writer(args: argparse.Namespace) -> Callable[[Program], str]:
    if args.program:
        return program_text
    if args.source:
        return _SOURCES[args.source]
    return _json if args.json else inspect_text


def _torch_source(program: Program) -> str:
    from nest._optional import need

    need("torch", extra="torch", purpose="print the source for torch")
    from nest.backends.torch.source import torch_source

    return torch_source(program)


_SOURCES: dict[str, Callable[[Program], str]] = {"torch": _torch_source}


def _json(program: Program) -> str:
    return json_text(definition_facts(program))
