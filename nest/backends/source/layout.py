"""How generated source is laid out: as the project's formatter would have it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["WIDTH", "GeneratedText", "docstring", "head"]

WIDTH = 110
"""Columns of a line, indentation included."""


def docstring(doc: str) -> list[str]:
    """A docstring, unindented."""
    escaped = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    first, *rest = (escaped[:-1] + '\\"' if escaped.endswith('"') else escaped).splitlines()
    return [f'"""{first}"""'] if not rest else [f'"""{first}', *rest, '"""']


def head(name: str, arguments: Sequence[str], result: str = "", *, indent: int = 4) -> list[str]:
    """The head of a function: on one line, else with its arguments on the next, else one argument a line."""
    closing = f"){f' -> {result}' if result else ''}:"
    inner = ", ".join(arguments)
    if len(f"def {name}({inner}{closing}") <= WIDTH - indent:
        return [f"def {name}({inner}{closing}"]
    if len(inner) <= WIDTH - indent - 4:
        return [f"def {name}(", f"    {inner}", closing]
    return [f"def {name}(", *(f"    {a}," for a in arguments), closing]


@dataclass(frozen=True)
class GeneratedText:
    """A generated file.

    Attributes:
        doc: its docstring.
        imports: its import statements, a line each, in any order.
        parts: helpers and classes, children before parents.
        root: the root class, the last of the parts.
        takes: what the root's constructor takes, as source.
    """

    doc: str
    imports: tuple[str, ...]
    parts: tuple[str, ...]
    root: str
    takes: dict[str, str]

    @property
    def text(self) -> str:
        """The file."""
        heading = "\n".join([*docstring(self.doc), "", *_arranged(self.imports)])
        return "\n\n\n".join([heading, *(part.strip("\n") for part in self.parts)]) + "\n"

    def arguments(self, framework: object) -> dict[str, object]:
        """The root's constructor arguments; `framework` is the module whose attributes element types are."""
        return {
            n: int(v) if v.isdigit() else getattr(framework, v.partition(".")[2])
            for n, v in self.takes.items()
        }


def _arranged(imports: Iterable[str]) -> Iterator[str]:
    """Imports in groups, as linters want them."""
    groups: dict[int, list[str]] = {}
    for line in set(imports):
        module = line.split()[1].partition(".")[0]
        place = 0 if module == "__future__" else 1 if module in sys.stdlib_module_names else 2
        groups.setdefault(place, []).append(line)
    for number, place in enumerate(sorted(groups)):
        yield from [""] if number else []
        yield from sorted(groups[place], key=lambda line: (line.startswith("from"), line.split()[1], line))
