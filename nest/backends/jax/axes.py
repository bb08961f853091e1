"""What the axes of parameters and states are called: the definition's own spelling of their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nest.ir.dim import Dim
from nest.ir.program import BlockDef, Path, Program, path_text

__all__ = ["parameter_axes", "state_axes"]

Axes = dict[str, tuple[str, ...]]


def parameter_axes(program: Program) -> Axes:
    """The axes of each parameter and buffer by definition path, such as `("Inner", "D")` for `fc1.weight`.

    A name is the size as the root spells it: a generic of the root, a number, or an expression such as `D//Heads`,
    however many blocks it was handed down through.
    """
    return {
        path_text((*path, name)): tuple(str(dim.substitute(known)) for dim in param.type.shape)
        for path, block, known in _blocks(program.root, (), _own(program.root))
        for name, param in block.params.items()
    }


def state_axes(program: Program) -> Axes:
    """The axes of each state, likewise; `Batch` and `Capacity` are the session's."""
    return {
        path_text((*path, name)): tuple(str(dim.substitute(known)) for dim in state.type.shape)
        for path, block, known in _blocks(program.root, (), _own(program.root))
        for name, state in block.states.items()
    }


def _own(block: BlockDef) -> dict[str, Dim]:
    return {name: Dim.symbol(name) for name, generic in block.generics.items() if isinstance(generic, Dim)}


def _blocks(
    block: BlockDef, path: Path, known: Mapping[str, Dim]
) -> Iterator[tuple[Path, BlockDef, Mapping[str, Dim]]]:
    """Every block with its path and what its generics are in those of the root."""
    yield path, block, known
    for relative, use in block.uses():
        handed = {n: d.substitute(known) for n, d in use.generics.items() if isinstance(d, Dim)}
        yield from _blocks(use.block, (*path, *relative), handed)
