"""Transcribers in turn, each a process of its own in the Python that it is installed in."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Heard", "Hearer", "Turns"]


@dataclass
class Heard:
    """What one contender did: answers by the recording's number, in the order of rounds; see `nest.bench._hearing`."""

    ready: dict[str, Any]
    turns: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def peak_mib(self) -> float:
        """The most memory that the process had."""
        peaks = [turn["peak_mib"] for turns in self.turns.values() for turn in turns]
        return float(max(peaks, default=self.ready["peak_mib"]))

    def text(self, recording: int) -> str:
        """What the recording said, the first time."""
        return str(self.turns[recording][0]["text"])

    def seconds(self, recording: int) -> list[float]:
        """How long that took, each time."""
        return [float(turn["seconds"]) for turn in self.turns[recording]]

    def changed(self, recording: int) -> bool:
        """Whether its text was another at another time."""
        return len({turn["text"] for turn in self.turns[recording]}) > 1


class Hearer:
    """A contender's process, from outside.

    Args:
        command: what serves it.
        threads: the size of each library's pool.
        environment: added to this process's.
    """

    def __init__(self, command: Sequence[str], threads: int, environment: Mapping[str, str]) -> None:
        pools = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "MKL", "OPENBLAS")}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **pools, **environment},
        )

    def answer(self) -> dict[str, Any] | None:
        """The next line; None where the process ended."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def hear(self, recording: int) -> dict[str, Any] | None:
        """Let it transcribe one, and wait."""
        if self._process.stdin is None:
            return None
        try:
            self._process.stdin.write(f"{recording}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.answer()

    def end(self) -> None:
        """Let it end."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class Turns:
    """All contenders, loaded and warm; a context manager that ends them.

    Attributes:
        found: what those did that are running.
        failed: the others, with why.
    """

    def __init__(self) -> None:
        self.found: dict[str, Heard] = {}
        self.failed: dict[str, str] = {}
        self._running: dict[str, Hearer] = {}

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *error: object) -> None:
        for hearer in self._running.values():
            hearer.end()

    def start(self, name: str, hearer: Hearer) -> None:
        """Wait until one is ready."""
        ready = hearer.answer()
        if ready is None:
            hearer.end()
            self.failed[name] = "did not start"
        else:
            self._running[name] = hearer
            self.found[name] = Heard(ready)

    def round(self, recording: int, *, backwards: bool = False) -> None:
        """Each transcribes one, one after another; who ends over it is out."""
        for name in sorted(self._running, key=list(self._running).index, reverse=backwards):
            answer = self._running[name].hear(recording)
            if answer is None:
                self._running.pop(name).end()
                del self.found[name]
                self.failed[name] = f"ended over recording {recording}"
            else:
                self.found[name].turns.setdefault(recording, []).append(answer)
