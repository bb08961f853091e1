"""Plans: a program made ready to run in a named way."""

from __future__ import annotations

from dataclasses import dataclass

from nest.errors import CallError
from nest.ir.program import Program

__all__ = ["PLANS", "Plan", "plan"]

PLANS: dict[str, str] = {
    "exact": "the definition as it is written, in full precision: what every other plan is measured against",
    "fast": "the same results within the published tolerances, by whatever the backend does fastest",
}
"""The plans there are, each with what it promises."""


@dataclass(frozen=True)
class Plan:
    """A program and the name of what was done to it. `exact` is the program itself."""

    name: str
    program: Program


def plan(program: Program, name: str = "exact") -> Plan:
    """The plan `name` of a program.

    Raises:
        CallError: there is no such plan.
    """
    if name not in PLANS:
        raise CallError(f"There is no plan '{name}'; nest has {', '.join(PLANS)}.")
    return Plan(name, program)
