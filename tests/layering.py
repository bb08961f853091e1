"""Read the imports of a package from its source, and find those that go against its layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

BASE = ("errors", "_suggest", "_optional", "_collector", "_timing", "_trace_times")
ORDER = (
    "ir", "layers", "loops", "registry", "weights", "backends", "loading", "footprint", "checking",
    "adopting", "tasks", "verify", "evaluating", "export", "bench", "catalog", "cli",
)  # fmt: skip
"""Each part may import itself, those before it, and BASE."""

LOWEST = {
    "errors": (),
    "_suggest": (),
    "_collector": (),
    "_optional": ("errors", "_timing"),
    "_timing": ("_trace_times",),
    "_trace_times": (),
    "_env": ("errors",),
    "ir": ("errors", "_suggest"),
}
TOP = ("__init__", "__main__", "_command")
"""Modules that may import anything: the package's own names, and the ways in."""

USERS = ("bench", "catalog", "cli")
"""Parts that use nest as a stranger does, and may `import nest`."""

BACKENDS = ("reference", "torch", "jax", "onnx")


def faults(package: Path) -> list[str]:
    """Every import of the package `nest` at `package` that its layers do not admit."""
    found = []
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        for line, target in imports(file, ("nest", *parts)):
            if target[:1] == ("nest",) and not _admitted(parts, target[1:]):
                found.append(f"{file.relative_to(package)}:{line} imports {'.'.join(target)}")
    return found


def imports(file: Path, name: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted name of everything that a file imports, in functions and under TYPE_CHECKING too."""
    package = name[:-1]  # of a module and of a package's `__init__` alike
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                # `from nest import ir` names a part; `from nest.ir import Dim` names what is in one.
                yield node.lineno, (*module, alias.name) if len(module) == 1 else module


def _admitted(importer: Sequence[str], target: Sequence[str]) -> bool:
    part = importer[0]
    if part in TOP or not target:
        # `import nest` alone reaches every part by attribute, so it is for those who may use every part.
        return part in TOP or part in USERS
    if target == ("__version__",):
        return True  # a fact, not a part
    if target[0] == part:
        return part != "backends" or _backends_apart(importer, target)
    return target[0] in _below(part)


def _below(part: str) -> Sequence[str]:
    if part in LOWEST:
        return LOWEST[part]
    known: Mapping[str, Sequence[str]] = {name: (*BASE, *ORDER[:i]) for i, name in enumerate(ORDER)}
    return (*known.get(part, ()), *(("_env",) if part in ("loading", "cli") else ()))


def _backends_apart(importer: Sequence[str], target: Sequence[str]) -> bool:
    """What backends share may be imported by each of them, and imports none of them."""
    own, other = importer[1], target[1] if len(target) > 1 else "__init__"
    return other not in BACKENDS or own == other
