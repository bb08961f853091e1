"""What a graph's inputs and outputs are: all that a call needs to know of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

__all__ = ["Ports", "StatePort"]


@dataclass(frozen=True)
class StatePort:
    """How a graph exchanges one state with its session.

    Attributes:
        path: the state's definition path.
        input: the graph's input, or None where the entry does not read what was there.
        output: the graph's output, or None where the entry does not write.
        in_place: the output may be the input's own memory: nothing reads the old content once it is written.
    """

    path: str
    input: str | None
    output: str | None
    in_place: bool


@dataclass(frozen=True)
class Ports:
    """Names of inputs and outputs.

    Attributes:
        arguments: the inputs that the entry's arguments are, in order.
        results: the outputs that its results are, in order.
        states: the other inputs and outputs.
    """

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    states: tuple[StatePort, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """From what `to_json` gave."""
        states = tuple(StatePort(**port) for port in data["states"])
        return cls(tuple(data["arguments"]), tuple(data["results"]), states)
