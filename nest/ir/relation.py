"""Relations between dims: what `S <= MaxTokens` makes, to be required, or decided where values are known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from nest.errors import DefinitionError

if TYPE_CHECKING:
    from nest.ir.dim import Dim

__all__ = ["Relation"]

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Relation:
    """`left op right` over dims.

    Given to `Block.require` it becomes a rule that every call satisfies. Used as a truth value it must be
    decidable from the values that the generics are bound to, and must not hold by coincidence.
    """

    __slots__ = ("left", "op", "right")

    def __init__(self, left: Dim, op: str, right: Dim) -> None:
        self.left = left
        self.op = op
        self.right = right

    def holds(self) -> bool | None:
        """Whether it holds under the values that are known; None where they do not decide it."""
        if self.left.same(self.right):
            return self.op in ("==", "<=", ">=")
        left, right = self.left.value, self.right.value
        if left is None or right is None:
            return None
        return _OPERATORS[self.op](left, right)

    def check(self, values: Mapping[str, int]) -> bool:
        """Whether it holds when the symbols have these values."""
        return _OPERATORS[self.op](self.left.evaluate(values), self.right.evaluate(values))

    def substitute(self, dims: Mapping[str, Dim]) -> Relation:
        return Relation(self.left.substitute(dims), self.op, self.right.substitute(dims))

    def symbols(self) -> frozenset[str]:
        return self.left.symbols() | self.right.symbols()

    def values_text(self) -> str:
        """What the sides that are expressions are worth: `D%Heads is 4`."""
        sides = [side for side in (self.left, self.right) if side.symbols()]
        return ", ".join(f"{side} is {side.value}" for side in sides)

    def __bool__(self) -> bool:
        decided = self.holds()
        if decided is None:
            raise DefinitionError(
                f"'{self}' cannot decide a branch: {self._unknown()} has no value until the entry is called, and a "
                f"method is traced once for all calls. State what must hold with self.require({self}), or choose "
                f"with a static field."
            )
        symbolic = bool(self.left.symbols()) and bool(self.right.symbols())
        if (
            self.op in ("==", "!=")
            and symbolic
            and not self.left.same(self.right)
            and decided == (self.op == "==")
        ):
            raise DefinitionError(
                f"'{self}' compares two dims that are both {self.left.value} only by a coincidence of this checkpoint. "
                f"If they must be equal, say self.require({self.left} == {self.right}); "
                f"if not, choose with a static field."
            )
        return decided

    def _unknown(self) -> str:
        side = self.left if self.left.value is None else self.right
        return f"'{side}'"

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"

    def __repr__(self) -> str:
        return f"<Relation {self}>"
