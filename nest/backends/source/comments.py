"""The comments of a definition, and which statement, member, method or class each of them is about."""

from __future__ import annotations

import ast
import io
import linecache
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from nest.ir.location import first_line, function_node, tree_of
from nest.ir.program import BlockDef

__all__ = ["MethodComments", "class_comments", "member_comments", "method_comments"]


@lru_cache(maxsize=64)
def _comments(filename: str) -> dict[int, str]:
    """Comments by line."""
    text = "".join(linecache.getlines(filename))
    if "#" not in text:  # tokens take longer than all else that is printed
        return {}
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return {}
    return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT and "fmt:" not in t.string}


@lru_cache(maxsize=64)
def _own_lines(filename: str) -> frozenset[int]:
    """Lines that hold a comment and nothing else."""
    return frozenset(
        n for n in _comments(filename) if linecache.getline(filename, n).lstrip().startswith("#")
    )


def _above(filename: str, line: int) -> list[str]:
    """The comments on the lines right above a line."""
    first = line
    while first - 1 in _own_lines(filename):
        first -= 1
    return [_comments(filename)[n] for n in range(first, line)]


class MethodComments:
    """The comments in the body of a method, to be taken in order as its statements are printed."""

    def __init__(self, code: CodeType) -> None:
        self._file = code.co_filename
        node = function_node(code)
        body = [] if node is None else [s for s in node.body if not _is_docstring(s)]
        first = code.co_firstlineno if node is None else _start(node, body)
        last = (node.end_lineno or first) if node is not None else first
        known = _comments(self._file)
        self._waiting = [(n, known[n]) for n in sorted(known) if first < n <= last]

    def until(self, line: int) -> list[str]:
        """The comments up to a line that have not been taken."""
        taken = [text for n, text in self._waiting if n <= line]
        self._waiting = [(n, text) for n, text in self._waiting if n > line]
        return taken

    def rest(self) -> list[str]:
        """All that have not been taken."""
        return self.until(1 << 30)

    def covers(self, code: CodeType) -> bool:
        """Whether lines of this code are of the same file."""
        return code.co_filename == self._file


def _start(node: ast.FunctionDef, body: list[ast.stmt]) -> int:
    """The last line of what stands before the body's first comment: the head, or the docstring."""
    if len(body) < len(node.body):
        return node.body[0].end_lineno or node.lineno
    # The colon of the head is on the line of its result, else of its last argument.
    ends = [a.end_lineno or node.lineno for a in ast.walk(node.args) if isinstance(a, ast.arg)]
    return max([node.lineno, *ends, *([node.returns.end_lineno or 0] if node.returns is not None else [])])


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def method_comments(code: CodeType) -> list[str]:
    """The comments right above a method."""
    return _above(code.co_filename, code.co_firstlineno)


def class_comments(block: BlockDef) -> list[str]:
    """The comments right above the class of a block."""
    found = _class(block)
    return [] if found is None else _above(found[0], first_line(found[1]))


def member_comments(block: BlockDef) -> dict[str, list[str]]:
    """The comments of generics (in the class's body) and of what `build` makes, by name."""
    found = _class(block)
    return {} if found is None else dict(_members(*found))


def _members(filename: str, node: ast.ClassDef) -> Iterator[tuple[str, list[str]]]:
    known = _comments(filename)
    build = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "build"]
    fields: list[ast.stmt] = [s for s in node.body if isinstance(s, ast.AnnAssign)]
    starts = [(fields, fields[0].lineno - 1 if fields else 0), *((f.body, f.lineno) for f in build)]
    for group, last in starts:
        for statement in group:
            end = statement.end_lineno or statement.lineno
            name = _assigned(statement)
            # What stands above a rule belongs to the member after it.
            if name is not None:
                first = min(last + 1, statement.lineno)
                yield name, [known[n] for n in range(first, end + 1) if n in known]
                last = end


def _assigned(statement: ast.stmt) -> str | None:
    """`x` of `self.x = ...` or `x: Dim`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(statement, ast.AnnAssign):
        target = statement.target
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else None


def _class(block: BlockDef) -> tuple[str, ast.ClassDef] | None:
    for function in block.functions.values():
        filename = function.code.co_filename
        tree = tree_of(filename)
        for node in () if tree is None else tree.body:
            if isinstance(node, ast.ClassDef) and node.name == block.name:
                return filename, node
    return None
