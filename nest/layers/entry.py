"""Entries: the methods of a root block that a loaded model offers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nest._suggest import aside
from nest.errors import DefinitionError
from nest.ir.program import Program
from nest.layers._definitions import definition_of
from nest.layers._elaboration import Elaboration, current_elaboration
from nest.layers._functions import function_of
from nest.layers._reserved import TAKEN
from nest.layers._trace import located
from nest.layers.block import Block

__all__ = ["elaborate", "elaborate_with", "entry"]

F = TypeVar("F", bound=Callable[..., Any])


def entry(method: F) -> F:
    """Mark a method of the root block as an entry of the model."""
    method._nest_entry = True  # type: ignore[attr-defined]
    return method


def elaborate(
    root: type[Block],
    /,
    *,
    name: str | None = None,
    loops: Mapping[str, Callable[..., Any]] | None = None,
    **generics: Any,
) -> Program:
    """Build a definition with its generics bound, and trace every entry.

    Args:
        root: the root block's class.
        name: what the program is called; the class's name if not given.
        loops: functions `(root, *tensors)`, annotated like methods, that become entries too.
        **generics: values for the root's generics and static fields; `T` is a dtype name such as `"f32"`.

    Raises:
        DefinitionError: the definition breaks a rule; the message has the line and where each symbol was bound.
    """
    return elaborate_with(root, generics, name=name, loops=loops)


def elaborate_with(
    root: type[Block],
    generics: Mapping[str, Any],
    *,
    name: str | None = None,
    loops: Mapping[str, Callable[..., Any]] | None = None,
) -> Program:
    """`elaborate`, with the generics as a mapping: one from a file may have any name, that of an argument too.

    Raises:
        DefinitionError: as `elaborate`.
    """
    if not (isinstance(root, type) and issubclass(root, Block)):
        raise DefinitionError(
            f"{getattr(root, '__name__', repr(root))} is no Block, and the root of a definition is one: derive it from "
            f"nest.layers.Block."
        )
    names = entry_names(root)
    if not names:
        raise DefinitionError(f"{root.__name__} has no entry: mark a method with @entry.")
    if taken := sorted(TAKEN.intersection(names)):
        raise DefinitionError(
            f"{root.__name__} has an entry '{taken[0]}', and every loaded model or session has something of that name: "
            f"name the entry otherwise."
        )
    unknown = [n for n in generics if n not in root._fields().kinds]
    if unknown:
        kinds = root._fields().kinds
        if unknown[0] in inspect.get_annotations(root):
            written = inspect.get_annotations(root)[unknown[0]]
            raise DefinitionError(
                f"{root.__name__} annotates '{unknown[0]}' as {written}; a generic is annotated Dim or DType, and "
                f"what is fixed and no size is Static[...]."
            )
        raise DefinitionError(
            f"{name or root.__name__} has no generic '{unknown[0]}'{aside(unknown[0], kinds)}; "
            f"it has {', '.join(kinds)}."
        )
    empty = [
        n for n, v in generics.items() if isinstance(v, int) and v == 0 and root._fields().kinds[n] == "dim"
    ]
    if empty:
        raise DefinitionError(f"{name or root.__name__}: '{empty[0]}' is a size of 1 or more; 0 was given.")
    token = current_elaboration.set(Elaboration())
    try:
        block = root(**generics)
        functions = {n: function_of(block, n) for n in names}
        for added, loop in (loops or {}).items():
            functions[added] = function_of(block, added, method=loop)
        return Program(name or root.__name__, definition_of(block), functions, tuple(block._rules))
    except DefinitionError as error:
        raise located(error) from error.__cause__
    except SystemExit as error:  # a definition does not end the program that reads it
        raise DefinitionError(
            f"{name or root.__name__} ended the program (SystemExit: {error}) while it was elaborated."
        ) from error
    finally:
        current_elaboration.reset(token)


def entry_names(root: type[Block]) -> list[str]:
    """The entries of a class, in the order they are written."""
    names: dict[str, None] = {}
    for base in reversed(root.__mro__):
        for name, value in vars(base).items():
            if getattr(value, "_nest_entry", False):
                names[name] = None
    return list(names)
