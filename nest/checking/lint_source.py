"""A definition's text: built from the layer API alone, so that reading it shows all that it does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from nest.registry.manifest import Source

__all__ = ["source_faults"]

Fault = tuple[str, int | None]

_LAYERS = "nest.layers"
_PLAIN = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign)
_REFUSED = frozenset(
    {
        "__import__",
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "getattr",
        "globals",
        "input",
        "locals",
        "open",
    }
    | {"print", "setattr", "vars"}
)
_GENERIC = re.compile(r"[A-Z][A-Za-z0-9]*")


def source_faults(file: Path, source: Source) -> Iterator[Fault]:
    """(what is wrong, line) of a definition file.

    Args:
        file: the definition.
        source: what the manifest says is in it.
    """
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError) as error:
        yield f"not Python: {error}", getattr(error, "lineno", None)
        return
    if ast.get_docstring(tree) is None:
        yield "no docstring: say what the architecture is, with its paper", 1
    for position, statement in enumerate(tree.body):
        if not isinstance(statement, _PLAIN) and not (position == 0 and isinstance(statement, ast.Expr)):
            yield (
                "a definition holds imports, constants, functions and classes; this runs on import",
                statement.lineno,
            )
    for node in ast.walk(tree):
        yield from _node_faults(node)
    yield from _root_faults(tree, source)


def _node_faults(node: ast.AST) -> Iterator[Fault]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name in _foreign(node):
            yield f"it imports {name}; a definition is built from {_LAYERS} alone", node.lineno
    elif isinstance(node, ast.Name) and node.id in _REFUSED:
        yield f"'{node.id}' has no place in a definition", node.lineno
    elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
        yield f"'.{node.attr}' reaches behind the layer API", node.lineno
    elif isinstance(node, ast.ClassDef):
        yield from _class_faults(node)


def _foreign(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name != _LAYERS]
    module = "." * node.level + (node.module or "")
    return [] if module in (_LAYERS, "__future__") else [module]


def _class_faults(node: ast.ClassDef) -> Iterator[Fault]:
    if ast.get_docstring(node) is None:
        yield f"class {node.name} has no docstring", node.lineno
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            kind = field.annotation.id if isinstance(field.annotation, ast.Name) else ""
            if kind in ("Dim", "DType") and not _GENERIC.fullmatch(field.target.id):
                yield f"the generic '{field.target.id}' is not in capitals, such as 'Heads'", field.lineno


def _root_faults(tree: ast.Module, source: Source) -> Iterator[Fault]:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    root = classes.get(source.root)
    if root is None:
        yield (
            f"no class '{source.root}', which source.root names; its classes: {', '.join(classes) or 'none'}",
            None,
        )
        return
    marked = [node for node in root.body if isinstance(node, ast.FunctionDef) and _is_entry(node)]
    if source.entry not in [node.name for node in marked]:
        names = ", ".join(node.name for node in marked) or "none"
        yield (
            f"'{source.entry}', source.entry, is no @entry of {source.root}; its entries: {names}",
            root.lineno,
        )
    for node in marked:
        if ast.get_docstring(node) is None:
            yield f"the entry '{node.name}' has no docstring", node.lineno


def _is_entry(node: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "entry" for one in node.decorator_list)
