"""What a check or a lint found of one entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["Finding", "Level", "Report"]

Level = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Finding:
    """One sentence about one part: that it is right, what a person should know of it, or what is wrong."""

    part: str
    level: Level
    message: str
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}{f':{self.line}' if self.line else ''}: " if self.file else ""
        return f"{place}{self.message}"


@dataclass
class Report:
    """The findings of one entry, in the order in which its parts were looked at."""

    name: str
    folder: Path | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> list[Finding]:
        """What is wrong."""
        return [finding for finding in self.findings if finding.level == "fault"]

    def ok(self, part: str, message: str) -> None:
        """Record that a part is right."""
        self.findings.append(Finding(part, "ok", message))

    def note(self, part: str, message: str) -> None:
        """Record what is not wrong and should be known."""
        self.findings.append(Finding(part, "note", message))

    def fault(self, part: str, message: str, file: Path | None = None, line: int | None = None) -> None:
        """Record what is wrong, where."""
        self.findings.append(Finding(part, "fault", message, file, line))

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "folder": self.folder and str(self.folder),
            "ok": not self.faults,
            "findings": [dict(_facts(finding)) for finding in self.findings],
        }


def _facts(finding: Finding) -> Iterator[tuple[str, Any]]:
    yield from (("part", finding.part), ("level", finding.level), ("message", finding.message))
    if finding.file is not None:
        yield "file", str(finding.file)
    if finding.line is not None:
        yield "line", finding.line
