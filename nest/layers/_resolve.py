"""Turn axes as text into types in a block's generics."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence

from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.parse import parse
from nest.ir.types import TensorType
from nest.layers.annotations import TensorAnnotation
from nest.layers.block import SESSION_SYMBOLS, Block

__all__ = ["known_symbol", "resolve_dtype", "resolve_shape", "resolve_type", "spread"]


def known_symbol(block: Block, name: str) -> Dim | None:
    """What a name stands for in a block: a generic, a whole number that is static or that build assigned, or a symbol
    of the session."""
    generic = block._generics.get(name)
    if isinstance(generic, Dim):
        return generic
    value = block._values.get(name, block._statics.get(name))
    if isinstance(value, Dim):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Dim.constant(value)
    return SESSION_SYMBOLS.get(name)


def resolve_dtype(block: Block, annotation: TensorAnnotation, where: str) -> DType:
    """The element type of an annotation; `Float` is the block's own T."""
    if annotation.dtype is not None:
        return DType.of(annotation.dtype)
    own = block._generics.get("T")
    if not isinstance(own, DType):
        raise DefinitionError(
            f"{where}: Float[...] means the block's own float type, and {type(block).__name__} declares no 'T: DType'. "
            f"Declare it, or use Float32[...]."
        )
    return own


def spread(axes: Sequence[str], ranks: Mapping[str, int]) -> list[str]:
    """Axes with each `*S` written as the `S0 S1 ...` that it stands for."""
    return [
        a
        for axis in axes
        for a in ([f"{axis[1:]}{i}" for i in range(ranks[axis[1:]])] if axis[0] == "*" else [axis])
    ]


def resolve_shape(
    block: Block, axes: Sequence[str], free: dict[str, Dim] | None, where: str
) -> tuple[Dim, ...]:
    """Axes as dims. Names that the block does not know are added to `free`, or refused where it is None."""

    def lookup(name: str) -> Dim:
        known = known_symbol(block, name)
        if known is not None:
            return known
        if keyword.iskeyword(name):
            raise KeyError(name)
        if free is None:
            raise KeyError(name)
        return free.setdefault(name, Dim.symbol(name))

    try:
        return tuple(parse(axis, lookup) for axis in axes)
    except DefinitionError as error:
        names = [n for n, v in block._generics.items() if isinstance(v, Dim)]
        raise _located(
            f"{where}: in the axes '{' '.join(axes)}': {error} The generics of {type(block).__name__} are "
            f"{', '.join(names) or 'none'}, those of the session {', '.join(SESSION_SYMBOLS)}."
        ) from None


def _located(message: str) -> DefinitionError:
    error = DefinitionError(message)
    error.located = True
    return error


def resolve_type(block: Block, shape: str, dtype: DType, where: str = "") -> TensorType:
    """The type of a parameter or state made at `where`: every symbol must be bound."""
    where = f"{where or block._where}, {type(block).__name__}"
    return TensorType(resolve_shape(block, shape.split(), None, where), dtype)
