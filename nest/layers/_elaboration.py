"""What one elaboration keeps: blocks already built, keys already given, functions already traced."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nest.ir.program import BlockDef
    from nest.layers.block import Block

__all__ = ["Elaboration", "current_elaboration"]

current_elaboration: ContextVar[Elaboration | None] = ContextVar("nest_elaboration", default=None)


class Elaboration:
    """Caches of one definition. They hold no value across definitions, so a reload starts afresh."""

    def __init__(self) -> None:
        # A block is frozen once built, so equal constructor calls may share one object.
        self.built: dict[tuple[Any, ...], Block] = {}
        self.keys: dict[tuple[Any, ...], int] = {}
        self.definitions: dict[int, BlockDef] = {}

    def intern(self, key: tuple[Any, ...]) -> int:
        """A small number for a structural key: equal keys, equal numbers."""
        return self.keys.setdefault(key, len(self.keys) + 1)
