"""Arrays of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from nest.errors import DefinitionError
from nest.ir.dim import Dim

if TYPE_CHECKING:
    from nest.layers.block import Block

__all__ = ["BlockArray", "block_array"]

MOST_BLOCKS = 4096
"""No model has as many layers; a slip of the pen may, and each is built and traced."""

B = TypeVar("B", bound="Block")


class BlockArray(Generic[B]):
    """Blocks under one name, `layers.0`, `layers.1`, ...; iterating it in a method is a loop of the program."""

    def __init__(self, items: tuple[B, ...], count: Dim) -> None:
        self.items = items
        self.count = count

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> B:
        return self.items[index]

    def __iter__(self) -> Iterator[B]:
        return iter(self.items)


def block_array(count: int, make: Callable[[int], B]) -> BlockArray[B]:
    """`count` blocks, the i-th made by `make(i)`.

    A list of blocks does the same; this keeps the author's spelling of the length for those who read the program.
    """
    length = Dim.of(count)
    if int(length) > MOST_BLOCKS:
        raise DefinitionError(
            f"An array of {length} = {int(length)} blocks is more than {MOST_BLOCKS}, the most there can be."
        )
    return BlockArray(tuple(make(index) for index in range(int(length))), length)
