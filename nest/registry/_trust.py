"""What is said instead of running a definition that nobody has trusted.

The file is read, not run: a person is shown what it is and what it would bring in.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

__all__ = ["imported_modules", "what_would_run"]


def what_would_run(file: Path, root: str) -> str:
    """`/home/me/entry/model.py (class Model; 40 lines, sha256 12ab...; it imports nest.layers and os)`."""
    try:
        source = file.read_bytes()
    except OSError as error:
        return f"{file} (which cannot be read: {error.strerror or error})"
    lines = source.count(b"\n") + (not source.endswith(b"\n"))
    digest = hashlib.sha256(source).hexdigest()
    return f"{file} (class {root}; {lines} lines, sha256 {digest[:12]}...; {_imports(source)})"


def imported_modules(tree: ast.AST) -> list[str]:
    """The modules that a file's text imports, anywhere in it, by dotted name."""
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            names["." * node.level + (node.module or "")] = None
    names.pop("__future__", None)
    return list(names)


def _imports(source: bytes) -> str:
    try:
        names = imported_modules(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return "it is not valid Python"
    if not names:
        return "it imports nothing"
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"it imports {listed}"
