"""What a contender is once it is loaded. Imports nothing: a peer's Python need not have what nest depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Contender", "Given", "Piece"]

Piece = Callable[[], Any]


@dataclass
class Contender:
    """The job's pieces, each of which ends when its result is there; what they give; seconds of the load."""

    pieces: dict[str, Piece]
    results: Callable[[], Mapping[str, Any]]
    load_s: float | None


@dataclass(frozen=True)
class Given:
    """What a peer is given for the whole job.

    Attributes:
        task: arrays by name: `samples`, float32 at 16 kHz; or `ids`, of a prompt, and `count`, of new tokens; or
            `texts`.
        facts: of the checkpoint: `language`, `pooling`, `normalize`, `max_tokens`, as far as they mean something.
        folder: the entry's files under the names that the Hub has them under.
        weights: those that the user names for a peer that cannot read the folder; empty if none are.
        threads: of its pools, on a processor.
        device: `cpu` or `cuda`.
        batch: texts beside each other.
    """

    task: Mapping[str, Any]
    facts: Mapping[str, Any]
    folder: str
    weights: str
    threads: int
    device: str
    batch: int
