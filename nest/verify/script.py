"""Which entries a verification calls, and in which order: found from what they read and write."""

from __future__ import annotations

from dataclasses import dataclass

from nest.ir.dim import Dim
from nest.ir.program import Function, Parameter, Path, Program
from nest.ir.ranges import argument_ranges

__all__ = ["STEPS", "Argument", "arguments_of", "call_order", "rows_symbol"]

STEPS = 3
"""How often an entry that takes a position is called, one position after another."""


@dataclass(frozen=True)
class Argument:
    """One argument of an entry, and what its values mean.

    `role` is `"float"`, `"bool"`, `"ids"` (integers from `low` to below `high`), `"position"` (the next slot of a
    cache) or `"lengths"` (how much of the axis `symbol` counts in each row).
    """

    parameter: Parameter
    role: str
    low: int = 0
    high: Dim | int = 2
    symbol: str | None = None

    @property
    def name(self) -> str:
        return self.parameter.name


def call_order(program: Program) -> tuple[str, ...]:
    """The names of entries in the order of their calls; one with positions is there `STEPS` times.

    Entries without states come as they are defined; then those with states, each after those that write what it reads.
    Where that does not decide, an entry without a position comes before one with it, and one that writes before one
    that only reads.
    """
    calls = [n for n, f in program.entries.items() if not f.uses_state]
    waiting = [n for n, f in program.entries.items() if f.uses_state]
    waiting.sort(key=lambda n: (_positioned(program.entries[n]), not program.entries[n].writes))
    written: set[Path] = set()
    while waiting:
        ready = [n for n in waiting if program.entries[n].reads <= written | program.entries[n].writes]
        name = (ready or waiting)[0]
        waiting.remove(name)
        written |= program.entries[name].writes
        calls += [name] * (STEPS if _positioned(program.entries[name]) else 1)
    return tuple(calls)


def _positioned(function: Function) -> bool:
    return any(a.role == "position" for a in arguments_of(function))


def arguments_of(function: Function) -> list[Argument]:
    """The arguments of an entry with their roles, from their types and from what the program does with them."""
    ranges = argument_ranges(function)
    found = []
    for parameter in function.signature.parameters:
        kind = parameter.type.dtype.kind
        if kind != "int":
            found.append(Argument(parameter, kind))
        elif parameter.fill is not None and (symbol := parameter.fill.as_symbol()) is not None:
            found.append(Argument(parameter, "lengths", symbol=symbol))
        elif parameter.name == "pos" or any(
            r.reason.startswith("slots") for r in ranges.get(parameter.name, [])
        ):
            found.append(Argument(parameter, "position"))
        else:
            limits = ranges.get(parameter.name, [])
            low = max((-r.offset for r in limits), default=0)
            sizes = [r.size - r.offset if r.offset else r.size for r in limits]
            found.append(Argument(parameter, "ids", low, sizes[0] if sizes else 2))
    return found


def rows_symbol(function: Function) -> str | None:
    """The symbol of the axis along which an entry's rows lie: `Batch`, or the first axis of its first argument."""
    if function.uses_state:
        return "Batch"
    for parameter in function.signature.parameters:
        if parameter.type.rank:
            symbol = parameter.type.shape[0].as_symbol()
            return symbol if symbol in function.signature.generics else None
    return None
