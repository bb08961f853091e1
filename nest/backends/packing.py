"""The parameters of a plan, made of the definition's on whatever holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nest.ir.parammap import Concat, Expr, ParamMap, Quantized, Source, Transpose, Zeros

__all__ = ["Packer"]


@dataclass(frozen=True)
class Packer:
    """What a framework makes packed parameters with.

    Attributes:
        concat: arrays one after another along an axis.
        transpose: an array with its axes in another order, as it then lies in memory.
        zeros: of a shape and an element type's name.
        quantized: the parts of a matrix in 8 bits, by their names; None where no plan of the framework's has any.
    """

    concat: Callable[[Sequence[Any], int], Any]
    transpose: Callable[[Any, tuple[int, ...]], Any]
    zeros: Callable[[tuple[int, ...], str], Any]
    quantized: Callable[[Any], Mapping[str, Any]] | None = None

    def packed(self, params: ParamMap, read: Callable[[str], Any]) -> dict[str, Any]:
        """Every parameter of a plan; those that it leaves as they are, are the same objects.

        Args:
            read: gives a parameter by definition path.
        """
        made: dict[
            Expr, Mapping[str, Any]
        ] = {}  # each matrix is quantized once, whatever parts are asked for
        return {path: self._value(expression, read, made) for path, expression in params.expressions.items()}

    def _value(
        self, expression: Expr, read: Callable[[str], Any], made: dict[Expr, Mapping[str, Any]]
    ) -> Any:
        match expression:
            case Source(name):
                return read(name)
            case Transpose(of, perm):
                return self.transpose(self._value(of, read, made), perm)
            case Concat(parts, axis):
                return self.concat([self._value(part, read, made) for part in parts], axis)
            case Zeros(shape, dtype):
                return self.zeros(shape, dtype)
            case Quantized(of, part) if self.quantized is not None:
                if of not in made:
                    made[of] = self.quantized(self._value(of, read, made))
                return made[of][part]
        raise TypeError(f"no plan makes a parameter by {type(expression).__name__}")
