"""Arrays of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from nest.ir.dim import Dim

if TYPE_CHECKING:
    from nest.layers.block import Block

__all__ = ["BlockArray", "block_array"]

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
    return BlockArray(tuple(make(index) for index in range(int(length))), length)
