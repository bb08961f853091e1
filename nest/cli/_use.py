"""How an entry is used, with the backends that are installed here."""

from __future__ import annotations

from nest.backends.installed import BACKENDS, Backend
from nest.cli._entry import task_of
from nest.cli._format import columns
from nest.loading import BACKENDS as LOADABLE
from nest.registry import Entry

__all__ = ["usage", "usage_facts"]


def usage(entry: Entry) -> str:
    """Commands and code to copy, then what it takes to use the backends that are not here."""
    lines = [*_commands(entry), "import nest", *_pipeline(entry)]
    rows = [(f"model = {_load(entry, name)}", f"# {one.gives}") for name, one in _here()]
    absent = [f"  {name}: not installed here; {one.remedy}" for name, one in _loadable() if not one.installed]
    text = "\n".join(f"  {line}".rstrip() for line in lines)
    return "\n".join([text, *([columns(rows, indent=2)] if rows else []), *(["", *absent] if absent else [])])


def usage_facts(entry: Entry) -> dict[str, str]:
    """The code of each backend that is installed here."""
    return {name: _load(entry, name) for name, _ in _here()}


def _load(entry: Entry, backend: str) -> str:
    return f'nest.load("{entry.reference}", backend="{backend}"{_trust(entry)})'


def _trust(entry: Entry) -> str:
    return "" if entry.trusted else ", trust_source=True"


def _commands(entry: Entry) -> list[str]:
    if task_of(entry) != "transcription":
        return []
    return [f"nest run {entry.reference} talk.mp3{'' if entry.trusted else ' --trust-source'}", ""]


def _pipeline(entry: Entry) -> list[str]:
    if task_of(entry) != "transcription":
        return []
    return [f'print(nest.pipeline("{entry.reference}"{_trust(entry)})("talk.mp3").text)']


def _here() -> list[tuple[str, Backend]]:
    return [(name, one) for name, one in _loadable() if one.installed]


def _loadable() -> list[tuple[str, Backend]]:
    return [(name, BACKENDS[name]) for name in LOADABLE]
