"""A definition's source for a page: every class can be linked to, comments and docstrings are set apart.

Full highlighting would make the text four times as long, and a page is to stay small.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nest.catalog.markup import element, escape
from nest.ir import Program

__all__ = ["Shown", "Sources"]

STANDARD = "nest.layers.standard"


@dataclass(frozen=True)
class Shown:
    """A text that a page shows, with the classes in it and the lines they begin at, from 1."""

    title: str
    text: str
    classes: dict[str, int]


class Sources:
    """What a page shows of code: the definition, and those standard layers that the program uses."""

    def __init__(self, definition: Path, title: str, program: Program) -> None:
        text = definition.read_text(encoding="utf-8")
        self.definition = Shown(title, text, _classes(text))
        self._program = program

    @cached_property
    def standard(self) -> Shown:
        """The classes of `nest.layers.standard` that are used, one after another; empty where none is."""
        parts: list[str] = []
        classes: dict[str, int] = {}
        for module, names in sorted(self._used().items()):
            text = Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8")
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef) and node.name in names and node.name not in classes:
                    classes[node.name] = sum(part.count("\n") for part in parts) + 1
                    parts.append("\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]) + "\n\n\n")
        return Shown(STANDARD, "".join(parts).rstrip("\n") + "\n" if parts else "", classes)

    @cached_property
    def parts(self) -> dict[str, Shown]:
        """What there is to show, by the name of its file."""
        found = {"definition": self.definition, "layers": self.standard}
        return {part: shown for part, shown in found.items() if shown.text}

    def mark(self, name: str, shown: Shown) -> str:
        """The `id` of a class in what is shown."""
        return _id(name, standard=shown is not self.definition)

    def anchor(self, name: str, module: str) -> str | None:
        """The address on the page of a class of a module; None where the page does not show it."""
        if module.startswith(f"{STANDARD}."):
            return f"#{_id(name, standard=True)}" if name in self.standard.classes else None
        return f"#{_id(name, standard=False)}" if name in self.definition.classes else None

    def html(self, shown: Shown) -> str:
        """The text as `pre`, with an `id` at each class."""
        marks = {line: self.mark(name, shown) for name, line in shown.classes.items()}
        lines = _marked(shown.text).split("\n")
        for line, mark in marks.items():
            lines[line - 1] = element("span", lines[line - 1], id=mark)
        return element("pre", element("code", "\n".join(lines)), class_="nest-source")

    def _used(self) -> dict[str, set[str]]:
        """Classes of standard modules: of blocks, and those whose methods run."""
        used: dict[str, set[str]] = {}
        for block in self._program.root.distinct():
            used.setdefault(block.module, set()).add(block.name)
        files = {
            getattr(m, "__file__", None): n
            for n, m in list(sys.modules.items())
            if n.startswith(f"{STANDARD}.")
        }
        for function in self._program.functions():
            if module := files.get(function.code.co_filename):
                used.setdefault(module, set()).add(function.code.co_qualname.split(".")[0])
        return {module: names for module, names in used.items() if module.startswith(f"{STANDARD}.")}


def _id(name: str, *, standard: bool) -> str:
    return f"layers-{name}" if standard else f"source-{name}"


def _classes(text: str) -> dict[str, int]:
    return {node.name: node.lineno for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def _marked(text: str) -> str:
    """Code as HTML: `i` for comments and docstrings, `b` for the names of classes and functions."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found, at = [], 0
    for tag, (row, column), (end_row, end_column) in _spans(text):
        start, end = starts[row - 1] + column, starts[end_row - 1] + end_column
        # A tag a line, since each line may be wrapped in an element of its own.
        inside = "\n".join(element(tag, escape(part)) for part in text[start:end].split("\n"))
        found += [escape(text[at:start]), inside]
        at = end
    # MkDocs' extensions look for fences before they look for HTML.
    return "".join([*found, escape(text[at:])]).replace("`", "&#96;")


def _spans(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """What is set apart: (tag, where it starts, where it ends), in order."""
    previous = tokenize.NEWLINE
    defines = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        stands = previous in (tokenize.NEWLINE, tokenize.INDENT)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and stands):
            yield "i", token.start, token.end
        elif defines and token.type == tokenize.NAME:
            yield "b", token.start, token.end
        defines = token.type == tokenize.NAME and token.string in ("class", "def")
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.DEDENT):
            previous = token.type
