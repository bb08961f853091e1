"""What a framework's generated source differs in; everything else is printed by one printer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nest.ir.dtype import DType

if TYPE_CHECKING:
    from nest.backends.source.expr import Expr
    from nest.backends.source.methods import MethodWriter
    from nest.ir.dim import Dim
    from nest.ir.program import BlockUse, Node

__all__ = ["Dialect"]


class Dialect(Protocol):
    """The rules of one framework.

    Attributes:
        call_method: what the method that calling a block runs is named.
        reserved: names of the generated file that no variable of a method may take.
    """

    call_method: str = "forward"
    reserved: frozenset[str] = frozenset()

    def op(self, writer: MethodWriter, node: Node) -> Expr:
        """The expression of a node that is an op, or a read, assignment or update of a state."""

    def dtype(self, dtype: DType) -> Expr:
        """A concrete element type."""

    def parameter(self, writer: MethodWriter, node: Node) -> Expr:
        """The tensor of the parameter that a node reads."""
        return writer.member(node.attrs["path"])

    def while_loop(self, writer: MethodWriter, node: Node, carry: list[str]) -> list[str] | None:
        """The statements of a loop over the variables `carry`; None for a loop of Python's."""
        return None

    def layer(self, use: BlockUse, spell: DimSpeller) -> Expr | None:
        """The framework's own layer for a standard one, or None where the block is written out."""


class DimSpeller(Protocol):
    """Prints a dim in some scope."""

    def __call__(self, dim: Dim) -> str: ...
