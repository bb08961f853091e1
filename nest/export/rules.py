"""The rules of an entry in numbers, for those who do not know the definition's generics."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.program import Function, Program

__all__ = ["rule_texts"]


def rule_texts(program: Program, function: Function) -> list[str]:
    """`["S <= Capacity", "S <= 448"]`: what the sizes of a call must satisfy."""
    known = {n: g for n, g in program.root.generics.items() if isinstance(g, Dim)}
    numbers = {n: Dim.constant(g.value) for n, g in known.items() if g.value is not None}
    return [
        f"{rule.left.substitute(numbers)} {rule.op} {rule.right.substitute(numbers)}"
        for rule in function.signature.rules
    ]
