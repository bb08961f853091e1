"""The algebra that bindings and graph passes share: parameters as expressions over stored tensors.

A ParamMap says of every parameter which tensors it is made of. Maps compose (a checkpoint's bindings, then a
pass that packs projections), simplify before any file is read, and invert, so that what is loaded can be
saved. No array library is imported here; `nest.weights` evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nest.errors import BindingError
from nest.ir._param_expr import (
    STORED_DTYPES,
    Cast,
    Concat,
    Expr,
    Quantized,
    Reshape,
    Slice,
    Source,
    TensorSpec,
    Transpose,
    Zeros,
)
from nest.ir._param_invert import invert
from nest.ir._param_simplify import Simplifier

__all__ = [
    "STORED_DTYPES",
    "Cast",
    "Concat",
    "Expr",
    "ParamMap",
    "Quantized",
    "Reshape",
    "Slice",
    "Source",
    "TensorSpec",
    "Transpose",
    "Zeros",
]


@dataclass(frozen=True)
class ParamMap:
    """Parameters by name, each an expression over stored tensors."""

    expressions: Mapping[str, Expr]

    def infer(self, types: Mapping[str, TensorSpec]) -> dict[str, TensorSpec]:
        """Shape and dtype of every parameter, given those of the stored tensors.

        Raises:
            BindingError: an expression does not fit them.
        """
        return {name: expression.infer(types) for name, expression in self.expressions.items()}

    def after(self, first: ParamMap) -> ParamMap:
        """This map over the results of `first`: one map over what `first` reads.

        Raises:
            BindingError: this map reads a name that `first` does not make.
        """

        def substitute(node: Expr) -> Expr:
            if not isinstance(node, Source):
                return node
            if node.name not in first.expressions:
                raise BindingError(f"no parameter '{node.name}' to read")
            return first.expressions[node.name]

        return ParamMap({name: expression.map(substitute) for name, expression in self.expressions.items()})

    def simplify(self, types: Mapping[str, TensorSpec]) -> ParamMap:
        """The same parameters from no more work: see `Simplifier`.

        Raises:
            BindingError: an expression does not fit the types.
        """
        simplifier = Simplifier(types)
        return ParamMap({name: simplifier.simplify(expr) for name, expr in self.expressions.items()})

    def inverse(self, types: Mapping[str, TensorSpec]) -> ParamMap:
        """The stored tensors that this map reads, as expressions over its parameters.

        A tensor that two parameters hold alike (a tie) is taken from the first.

        Raises:
            BindingError: part of a tensor is in no parameter, or a cast loses values.
        """
        undone = invert(self.simplify(types).expressions, types)
        return ParamMap(undone).simplify(self.infer(types))

    def __str__(self) -> str:
        return "\n".join(f"{name} = {expression}" for name, expression in self.expressions.items())
