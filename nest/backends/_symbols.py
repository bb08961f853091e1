"""The symbols that a session decides: how many rows it has, and how many slots its caches."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from nest.errors import CallError
from nest.ir.dim import Dim
from nest.ir.inventory import default_capacity, states
from nest.ir.program import Program

__all__ = ["positive", "session_symbols"]


def session_symbols(program: Program, given: Mapping[str, int | None]) -> dict[str, int]:
    """The values of a session's symbols, from what was given and what the definition admits.

    Raises:
        CallError: an unknown symbol, a value that is not a positive integer, or one that a rule forbids.
    """
    unknown = [n for n in given if n not in ("Batch", "Capacity")]
    if unknown:
        raise CallError(
            f"A session of {program.name} has no '{unknown[0]}'; it takes Batch (rows) and Capacity (slots of its "
            f"caches). Generics are chosen when the model is loaded."
        )
    batch = given.get("Batch")
    symbols = {"Batch": 1 if batch is None else batch}
    capacity = given.get("Capacity")
    if capacity is None:
        capacity = default_capacity(program)
    if capacity is not None:
        symbols["Capacity"] = capacity
    elif _has_slots(program):
        raise CallError(
            f"The caches of {program.name} have Capacity slots, and no rule of the definition bounds it: say how many, "
            f"as in new_session(Capacity=256), or state self.require(Capacity <= ...) in the definition's build."
        )
    symbols = {n: positive(n, v) for n, v in symbols.items()}
    for rule in program.rules:
        if rule.symbols() <= {*symbols, *_generics(program)} and not _holds(program, rule, symbols):
            values = ", ".join(
                f"{n} = {v}"
                for n, v in sorted({**_generics(program), **symbols}.items())
                if n in rule.symbols()
            )
            raise CallError(f"{program.name} requires {rule}, and here {values}.")
    return symbols


def positive(name: str, value: Any) -> int:
    """The value of a session's symbol.

    Raises:
        CallError: it is no positive integer.
    """
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise CallError(f"{name} is a positive integer, and {value!r} was given.")
    return number


def _has_slots(program: Program) -> bool:
    dims = (d for spec in states(program).values() for d in spec.shape if isinstance(d, Dim))
    return any("Capacity" in d.symbols() for d in dims)


def _holds(program: Program, rule: Any, symbols: Mapping[str, int]) -> bool:
    return bool(rule.check({**_generics(program), **symbols}))


def _generics(program: Program) -> dict[str, int]:
    return {n: v.value for n, v in program.root.generics.items() if isinstance(v.value, int)}
