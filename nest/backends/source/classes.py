"""A program as the source of a module: one class for each kind of block, children before parents."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from nest.backends.source.dialect import Dialect
from nest.backends.source.methods import MethodWriter
from nest.backends.source.names import RESERVED
from nest.ir.program import BlockDef, Function, Program

__all__ = ["ClassText", "ClassWriter", "Source", "collect"]


@dataclass
class ClassText:
    """The text of one class, what its constructor takes, and the helpers that it calls."""

    name: str
    text: str
    takes: tuple[str, ...]
    helpers: dict[str, None] = field(default_factory=dict)


class ClassWriter(Protocol):
    """Writes a class of a block whose children are written."""

    def __call__(
        self, block: BlockDef, name: str, methods: list[MethodWriter], known: dict[int, ClassText]
    ) -> ClassText:
        """The class of `block`, called `name`; `known` holds the classes below it by block key."""


@dataclass
class Source:
    """Classes in order, each once, and which class each block has."""

    classes: list[ClassText]
    of: dict[int, ClassText]
    helpers: list[str]


def collect(
    program: Program, dialect: Dialect, write: ClassWriter, is_layer: Callable[[BlockDef], bool]
) -> Source:
    """Write every class of a program. Blocks whose text is equal share one class."""
    reached = program.functions()
    by_block: dict[int, list[Function]] = {}
    for function in reached:
        by_block.setdefault(function.block.key, []).append(function)
    of: dict[int, ClassText] = {}
    texts: dict[str, list[ClassText]] = {}
    order: list[ClassText] = []
    # Names that no numbered class may take: those of the file, and those that other blocks have of their own.
    taken = {b.name for b in program.root.distinct()} | RESERVED | dialect.reserved
    for block in program.root.distinct():
        if is_layer(block):
            continue
        functions = _in_source_order(by_block.get(block.key, []))
        name_of = _method_names(functions)
        same_name = texts.setdefault(block.name, [])

        def method_name(f: Function, local: dict[int, str] = name_of) -> str:
            if is_layer(f.block):
                return f.name  # the framework's own layer, which takes every rank
            return local.get(id(f)) or _method_names(_in_source_order(by_block[f.block.key]))[id(f)]

        writers = [MethodWriter(f, dialect, method_name) for f in functions]
        name = f"{block.name}Block" if block.name in RESERVED | dialect.reserved else block.name
        made = write(block, name, writers, of)
        twin = next((c for c in same_name if _body(c.text) == _body(made.text)), None)
        if twin is None:
            if same_name:
                made.name = _numbered(name, taken)
                made.text = re.sub(rf"^class {name}\b", f"class {made.name}", made.text)
            taken.add(made.name)
            same_name.append(made)
            order.append(made)
            twin = made
        of[block.key] = twin
    helpers = list(dict.fromkeys(h for c in order for h in c.helpers))
    return Source(order, of, helpers)


def _numbered(base: str, taken: Collection[str], joint: str = "") -> str:
    """The first of `base2`, `base3`, ... that is free."""
    number = 2
    while f"{base}{joint}{number}" in taken:
        number += 1
    return f"{base}{joint}{number}"


def _body(text: str) -> str:
    return text.partition("\n")[2]


def _in_source_order(functions: Iterable[Function]) -> list[Function]:
    return sorted(functions, key=lambda f: (f.code.co_filename, f.code.co_firstlineno))


def _method_names(functions: list[Function]) -> dict[int, str]:
    """A name for each function of a block; traces of one method for other ranks are numbered."""
    names: dict[int, str] = {}
    given: set[str] = set()
    members = {m for f in functions[:1] for m in (*f.block.params, *f.block.children, *f.block.states)}
    taken = {f.name for f in functions} | members
    for function in functions:
        name = function.name if function.name not in given else _numbered(function.name, taken | given, "_")
        given.add(name)
        names[id(function)] = name
    return names
