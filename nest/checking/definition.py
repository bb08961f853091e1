"""A definition, elaborated: every entry traced over symbols, and its shapes with the entry's own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nest.checking.report import Report
from nest.errors import DefinitionError, NestError
from nest.ir.dim import Dim
from nest.ir.inventory import default_capacity
from nest.ir.program import Function, Program
from nest.ir.types import TensorType
from nest.loading import program_of
from nest.registry import Entry

__all__ = ["bound_signature", "check_definition", "sizes_of"]

_PART = "definition"


def check_definition(entry: Entry, report: Report, *, trust_source: bool) -> Program | None:
    """Trace the whole definition, with the checkpoint's generics and with the tiny ones; None where that fails."""
    try:
        program = program_of(entry, trust_source=trust_source or None)
    except NestError as error:
        report.fault(_PART, str(error))
        return None
    before = len(report.faults)
    main = entry.manifest.source.entry
    if main not in program.entries:
        report.fault(_PART, f"source.entry is '{main}'; the definition's entries are {_names(program)}")
    sizes = sizes_of(entry, program)
    for name in entry.manifest.check:
        if not any(name in _symbols(function) for function in program.entries.values()):
            report.fault(_PART, f"check.{name}: no entry of the definition has a symbol '{name}'")
    for function in program.entries.values():
        for fault in _bound_faults(function, sizes):
            report.fault(_PART, f"entry '{function.name}': {fault}")
    if entry.manifest.tiny:
        _check_tiny(entry, report, trust_source=trust_source)
    if len(report.faults) == before:
        report.ok(_PART, f"traced symbolically and bound: {_names(program)}")
    return program


def sizes_of(entry: Entry, program: Program) -> dict[str, int]:
    """The numbers that symbols of calls and sessions have in a check: those of [check], else 1."""
    session = {"Batch": entry.generics.get("Batch", 1), "Capacity": entry.generics.get("Capacity")}
    if session["Capacity"] is None:
        session["Capacity"] = default_capacity(program) or 1
    called = {name: 1 for function in program.entries.values() for name in function.signature.generics}
    known = {name: value for name, value in session.items() if isinstance(value, int)}
    return {**called, **known, **entry.manifest.check}


def bound_signature(function: Function, sizes: Mapping[str, int]) -> str:
    """`(mel: f32[1, 80, 3000]) -> f32[1, 1500, 384]`.

    Raises:
        DefinitionError: a shape depends on a symbol that has no number.
    """
    signature = function.signature
    given = ", ".join(
        f"{parameter.name}: {_bound(parameter.type, sizes)}" for parameter in signature.parameters
    )
    results = ", ".join(_bound(type_, sizes) for type_ in signature.results)
    return f"({given}) -> {results if signature.single else f'({results})'}"


def _bound(type_: TensorType, sizes: Mapping[str, int]) -> str:
    return f"{type_.dtype.value}[{', '.join(str(size) for size in _shape(type_, sizes))}]"


def _shape(type_: TensorType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    known = {name: Dim.constant(value) for name, value in sizes.items()}
    shape = tuple(dim.substitute(known).value for dim in type_.shape)
    if None in shape:
        raise DefinitionError(f"{type_} depends on a symbol that has no number, here or in [check]")
    return tuple(int(size or 0) for size in shape)


def _bound_faults(function: Function, sizes: Mapping[str, int]) -> Iterator[str]:
    """What the numbers show that symbols leave open: rules that do not hold, axes without extent."""
    known = {name: Dim.constant(value) for name, value in sizes.items()}
    for rule in function.signature.rules:
        if rule.substitute(known).holds() is not True:
            numbers = ", ".join(f"{name} = {sizes[name]}" for name in sorted(rule.symbols() & sizes.keys()))
            yield f"'{rule}' does not hold for {numbers}"
    signature = function.signature
    named = [(f"argument '{parameter.name}'", parameter.type) for parameter in signature.parameters]
    for label, type_ in [*named, *(("its result", type_) for type_ in signature.results)]:
        try:
            shape = _shape(type_, sizes)
        except DefinitionError as error:
            yield f"{label}: {error}"
            continue
        if any(size < 1 for size in shape):
            yield f"{label}, {type_}, has the shape {list(shape)}: every axis needs an extent"


def _check_tiny(entry: Entry, report: Report, *, trust_source: bool) -> None:
    try:
        program_of(entry, trust_source=trust_source or None, **entry.manifest.tiny)
    except NestError as error:
        report.fault(_PART, f"with the generics of [tiny]: {error}")


def _symbols(function: Function) -> set[str]:
    """The symbols that a caller or a session gives a number to."""
    signature = function.signature
    types = [*(parameter.type for parameter in signature.parameters), *signature.results]
    used = {symbol for type_ in types for dim in type_.shape for symbol in dim.symbols()}
    return {*signature.generics, *(used & {"Batch", "Capacity"})}


def _names(program: Program) -> str:
    return ", ".join(program.entries)
