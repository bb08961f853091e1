"""What the pages of an entry are made of: all of it read from the entry, nothing written twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from nest.checking.measured import Current
from nest.ir import Program, parameters
from nest.loading import program_of
from nest.registry import Card, Entry, find
from nest.registry.bench import BenchRun, read_bench
from nest.registry.evaluations import EvalRun, read_eval
from nest.registry.parity import ParityRun, read_parity

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

    @cached_property
    def parity(self) -> list[tuple[ParityRun, bool]]:
        """The runs of the parity matrix, each with whether it is of the entry as it is.

        Raises:
            ManifestError: the file is not right.
        """
        return [(run, self._current.parity(run)) for run in read_parity(self.entry.directory, self.name)]

    @cached_property
    def bench(self) -> list[tuple[BenchRun, bool]]:
        """The benchmark's runs, each with whether it is of the entry as it is.

        Raises:
            ManifestError: the file is not right.
        """
        return [(run, self._current.bench(run)) for run in read_bench(self.entry.directory, self.name)]

    @cached_property
    def evaluations(self) -> list[tuple[EvalRun, bool]]:
        """What the entry gets wrong of recordings, each run with whether it is of the entry as it is.

        Raises:
            ManifestError: the file is not right.
        """
        return [(run, self._current.evaluation(run)) for run in read_eval(self.entry.directory, self.name)]

    @cached_property
    def _current(self) -> Current:
        return Current(self.entry)

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def task(self) -> str | None:
        """The kind of its task, such as `transcription`; None where there is none."""
        return self.entry.manifest.task.kind if self.entry.manifest.task else None
