"""What the names in types stand for: generics, sizes that build names, symbols of a session and of a call."""

from __future__ import annotations

from collections.abc import Iterator

from nest.catalog.markup import code, escape
from nest.ir import Dim, DType, Program, default_capacity

__all__ = ["symbols"]

SESSION = ("Batch", "Capacity")


def symbols(program: Program) -> list[tuple[str, str, str]]:
    """(name, value, what it is) as HTML, of every name in the types of the entries."""
    return [*_generics(program), *_named(program), *_session(program), *_of_calls(program)]


def _generics(program: Program) -> Iterator[tuple[str, str, str]]:
    for name, value in program.root.generics.items():
        kind = "element type of the weights" if isinstance(value, DType) else "generic of the model"
        yield code(name), code(value.value), kind


def _dims(program: Program) -> Iterator[Dim]:
    """Every size in a signature, a parameter or a state of the model."""
    for function in program.entries.values():
        for type_ in (*(p.type for p in function.signature.parameters), *function.signature.results):
            yield from type_.shape
    for block in program.root.distinct():
        for state in block.states.values():
            yield from state.type.shape


def _named(program: Program) -> Iterator[tuple[str, str, str]]:
    """Names that the definition gives to sizes, such as `Audio`."""
    known = {*program.root.generics, *SESSION}
    for function in program.entries.values():
        known |= set(function.signature.generics)
        for type_ in (*(p.type for p in function.signature.parameters), *function.signature.results):
            for dim in type_.shape:
                if dim.text.isidentifier() and dim.text not in known:
                    known.add(dim.text)
                    written = "" if dim.symbolic_text == str(dim.value) else f": {code(dim.symbolic_text)}"
                    yield code(dim.text), code(dim.value), f"size that the definition names{written}"


def _session(program: Program) -> Iterator[tuple[str, str, str]]:
    used = {name for dim in _dims(program) for name in dim.symbols()}
    used |= {name for rule in program.rules for side in (rule.left, rule.right) for name in side.symbols()}
    if "Batch" in used:
        yield code("Batch"), "of the session", "rows of a session, which has its states for so many"
    if "Capacity" in used:
        most = default_capacity(program)
        bound = "" if most is None else f"; {most} where it is not given, and at most"
        yield (
            code("Capacity"),
            "of the session",
            f"slots that a session's caches have for each row{escape(bound)}",
        )


def _of_calls(program: Program) -> Iterator[tuple[str, str, str]]:
    users: dict[str, list[str]] = {}
    for name, function in program.entries.items():
        for symbol in function.signature.generics:
            users.setdefault(symbol, []).append(name)
    for symbol, names in users.items():
        where = ", ".join(map(code, names))
        yield code(symbol), "of the call", f"what a call's arguments have there: {where}"
