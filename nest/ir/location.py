"""Where in a definition a node was made, down to the expression."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

__all__ = [
    "Location",
    "Span",
    "Statement",
    "assigned_names",
    "first_line",
    "function_node",
    "statements",
    "tree_of",
]


class Span(NamedTuple):
    """Lines from 1, columns from 0 in UTF-8 bytes, as in `ast`."""

    line: int
    end_line: int
    column: int
    end_column: int


@lru_cache(maxsize=4096)
def _positions(code: CodeType) -> list[Span | None]:
    spans: list[Span | None] = []
    for line, end_line, column, end_column in code.co_positions():
        known = None not in (line, end_line, column, end_column)
        spans.append(Span(line, end_line, column, end_column) if known else None)  # type: ignore[arg-type]
    return spans


class Location(NamedTuple):
    """An instruction of the code of a method; the span is looked up when it is needed."""

    code: CodeType
    instruction: int

    @property
    def span(self) -> Span | None:
        return _positions(self.code)[self.instruction // 2]

    @property
    def line(self) -> int:
        return self.span.line if self.span else self.code.co_firstlineno

    @property
    def file(self) -> str:
        """The file, with its folder where that names the entry: `whisper-tiny/model.py`."""
        return "/".join(Path(self.code.co_filename).parts[-2:])

    @property
    def source(self) -> str:
        """The line's text, stripped."""
        return linecache.getline(self.code.co_filename, self.line).strip()


class Statement(NamedTuple):
    """A statement of a method: its span, and how deep it is nested in loops."""

    span: Span
    node: ast.stmt


def _span(node: ast.AST) -> Span:
    return Span(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]


@lru_cache(maxsize=256)
def tree_of(filename: str) -> ast.Module | None:
    """A file's syntax tree; None if it is no Python, such as a page of documentation with code in it."""
    lines = linecache.getlines(filename)
    try:
        return ast.parse("".join(lines)) if lines else None
    except SyntaxError:
        return None


@lru_cache(maxsize=256)
def _functions(filename: str) -> dict[tuple[str, int], ast.FunctionDef]:
    tree = tree_of(filename)
    nodes = () if tree is None else ast.walk(tree)
    return {(n.name, first_line(n)): n for n in nodes if isinstance(n, ast.FunctionDef)}


def first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    """The first line of a function or class, decorators included."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def function_node(code: CodeType) -> ast.FunctionDef | None:
    """The syntax tree of a method; None where its source is not at hand."""
    return _functions(code.co_filename).get((code.co_name, code.co_firstlineno))


@lru_cache(maxsize=4096)
def statements(code: CodeType) -> tuple[Statement, ...]:
    """The statements of a method, outer before inner."""
    function = function_node(code)
    if function is None:
        return ()
    return tuple(
        Statement(_span(n), n) for n in ast.walk(function) if isinstance(n, ast.stmt) and n is not function
    )


def _targets(target: ast.expr, value: ast.expr, names: dict[Span, tuple[str, ...]]) -> None:
    if isinstance(target, ast.Name):
        names[_span(value)] = (target.id,)
    elif (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    ):
        for t, v in zip(target.elts, value.elts, strict=True):
            _targets(t, v, names)
    elif isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts):
        names[_span(value)] = tuple(t.id for t in target.elts if isinstance(t, ast.Name))


@lru_cache(maxsize=4096)
def assigned_names(code: CodeType) -> dict[Span, tuple[str, ...]]:
    """The names that a method gives to its expressions, by the expression's span.

    An augmented assignment computes its value at the span of the whole statement.
    """
    names: dict[Span, tuple[str, ...]] = {}
    for _, node in statements(code):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _targets(node.targets[0], node.value, names)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _targets(node.target, node.value, names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names[_span(node)] = (node.target.id,)
    return names
