"""An entry's README: its sections, and the snippets that a reader will copy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["README", "Snippet", "headings", "names_loaded", "snippet_faults", "snippets"]

README = "README.md"
_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL
)
_CALLS = ("load", "pipeline", "find")
_COMMAND = re.compile(r"^\s*(?:\$ )?nest (?:run|pull|show|check|inspect) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A fenced block: its language (`python`, `sh`, ...), its code, and the line where the code begins."""

    language: str
    code: str
    line: int


def snippets(text: str) -> list[Snippet]:
    """Every fenced block of a Markdown text."""
    return [
        Snippet(found["language"], found["code"], text.count("\n", 0, found.start("code")) + 1)
        for found in _FENCE.finditer(text)
    ]


def headings(text: str) -> list[str]:
    """The headings of a Markdown text with their marks, `## Use`; those of snippets are no headings."""
    prose = _FENCE.sub("", text)
    return [line.rstrip() for line in prose.splitlines() if re.match(r"#{1,6} \S", line)]


def names_loaded(found: list[Snippet]) -> set[str]:
    """The entries that snippets name, in calls of `nest.load` and the like and in commands."""
    names: set[str] = set()
    for snippet in found:
        if snippet.language == "python":
            names.update(_loaded(snippet.code))
        else:
            names.update(_COMMAND.findall(snippet.code))
    return names


def snippet_faults(file: Path, text: str, accepted: Sequence[str]) -> Iterator[tuple[str, int | None]]:
    """(what is wrong, line) of a README's snippets.

    Args:
        file: the README, as tracebacks of its snippets call it.
        text: its text.
        accepted: the names that mean this entry, its own first.
    """
    found = snippets(text)
    code = [snippet for snippet in found if snippet.language == "python"]
    if not code:
        yield "no snippet of Python (a block fenced with ```python)", None
    for snippet in code:
        try:
            compile(snippet.code, str(file), "exec", ast.PyCF_ONLY_AST)
        except SyntaxError as error:
            yield f"the snippet is not Python: {error.msg}", snippet.line + (error.lineno or 1) - 1
    if code and not names_loaded(found).intersection(accepted):
        yield f"no snippet uses this entry: none loads '{accepted[0]}'", None


def _loaded(code: str) -> Iterator[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
            first = node.args[0]
            if node.func.attr in _CALLS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value
