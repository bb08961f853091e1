"""What the pages of an entry are made of: all of it read from the entry, nothing written twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from nest.ir import Program, parameters
from nest.loading import program_of
from nest.registry import Card, Entry, find

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """An entry with its heading; what takes time to find out is found when it is asked for."""

    card: Card
    entry: Entry

    @classmethod
    def of(cls, card: Card) -> Facts:
        """Read the entry of a heading.

        Raises:
            ManifestError: the entry is not valid.
        """
        return cls(card, find(card.name))

    @cached_property
    def program(self) -> Program:
        """The program at the entry's own size."""
        return program_of(self.entry)

    @cached_property
    def parameter_count(self) -> int:
        """How many numbers the model has, ties counted once."""
        return sum(prod(spec.shape) for spec in parameters(self.program).values())

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def task(self) -> str | None:
        """The kind of its task, such as `transcription`; None where there is none."""
        return self.entry.manifest.task.kind if self.entry.manifest.task else None
