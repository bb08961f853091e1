"""Run a snippet of Python, and hold every shape that its comments promise."""

from __future__ import annotations

import ast
import re
from typing import Any

__all__ = ["promises", "run"]

_SHAPE = re.compile(r"#.*?\[(?P<shape>(?:\d+|[A-Z]\w*)(?:, (?:\d+|[A-Z]\w*))*)\]")


def promises(source: str) -> dict[int, str]:
    """The shape in the comment of each line that has one, by line."""
    found = {number: _SHAPE.search(line) for number, line in enumerate(source.splitlines(), 1)}
    return {number: match["shape"] for number, match in found.items() if match}


def run(source: str) -> tuple[dict[str, Any], int]:
    """Execute a snippet, and return the names that it leaves and how many shapes were looked at.

    `x = f()  # [2, S, 384]` promises the shape of `x`, or of the first name that the line assigns. Letters are whatever
    they are first, and then stay that.

    Raises:
        AssertionError: a value has another shape, or a line promises one and assigns nothing.
    """
    promised = promises(source)
    sizes: dict[str, int] = {}
    looked: list[int] = []

    def hold(line: int, value: Any) -> None:
        wanted = promised[line].split(", ")
        shape = tuple(value.shape)
        assert len(shape) == len(wanted), f"line {line} promises [{promised[line]}]; {shape} came"
        for size, word in zip(shape, wanted, strict=True):
            expected = int(word) if word.isdigit() else sizes.setdefault(word, size)
            assert size == expected, f"line {line} promises [{promised[line]}]; {shape} came ({sizes})"
        looked.append(line)

    tree = _Holding(set(promised)).visit(ast.parse(source))
    names: dict[str, Any] = {"_hold": hold, "__name__": "snippet"}
    exec(compile(ast.fix_missing_locations(tree), "snippet.py", "exec"), names)
    missed = set(promised) - set(looked)
    assert not missed, f"the shapes of lines {sorted(missed)} are of nothing that is assigned there"
    return names, len(looked)


class _Holding(ast.NodeTransformer):
    """Puts a look at the shape behind each assignment whose last line promises one."""

    def __init__(self, lines: set[int]) -> None:
        self.lines = lines

    def visit_Assign(self, node: ast.Assign) -> Any:
        if node.end_lineno not in self.lines:
            return node
        target = node.targets[0]
        first = target.elts[0] if isinstance(target, ast.Tuple) else target
        assert isinstance(first, ast.Name), ast.unparse(node)
        look = ast.parse(f"_hold({node.end_lineno}, {first.id})").body
        return [node, *look]
