"""How an entry is used, with the backends that are installed here."""

from __future__ import annotations

from nest.backends.installed import BACKENDS, Backend
from nest.cli._format import columns
from nest.loading import BACKENDS as LOADABLE
from nest.registry import Entry
from nest.tasks.snippets import Subject, commands, task_code

__all__ = ["usage", "usage_facts"]


def usage(entry: Entry) -> str:
    """Commands and code to copy, then what it takes to use the backends that are not here."""
    subject = Subject(entry)
    rows = [(command, f"# {what}") for command, what in commands(subject)]
    code = task_code(subject) or "import nest\n"
    loads = [(f"model = {subject.load(name)}", f"# {one.gives}") for name, one in _here()]
    absent = [f"  {name}: not installed here; {one.remedy}" for name, one in _loadable() if not one.installed]
    parts = [
        columns(rows, indent=2),
        "\n".join(f"  {line}".rstrip() for line in code.rstrip().splitlines()),
        columns(loads, indent=2),
        "\n".join(absent),
    ]
    return "\n\n".join(part for part in parts if part)


def usage_facts(entry: Entry) -> dict[str, str]:
    """The code of each backend that is installed here."""
    return {name: Subject(entry).load(name) for name, _ in _here()}


def _here() -> list[tuple[str, Backend]]:
    return [(name, one) for name, one in _loadable() if one.installed]


def _loadable() -> list[tuple[str, Backend]]:
    return [(name, BACKENDS[name]) for name in LOADABLE]
