"""How far an output may be from the oracle: what the entry declares, or the project's own bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nest.registry import Entry
from nest.verify.compare import Difference

__all__ = ["PROJECT", "Limit", "limit_of"]

PROJECT: Mapping[str, float] = {"f32": 2e-5, "f16": 2e-2, "bf16": 1e-1}
"""max|Δ| / max|ref| that no entry may exceed, by element type; an entry declares less."""


@dataclass(frozen=True)
class Limit:
    """Bounds of max|Δ| and of max|Δ| / max|ref|."""

    relative: float
    largest: float | None = None

    def admits(self, difference: Difference) -> bool:
        """Whether a result is within both, is finite, and chooses as the reference where that is not a matter of
        rounding."""
        allowed = self.relative * difference.scale if self.largest is None else self.largest
        return (
            difference.finite
            and difference.relative <= self.relative
            and (self.largest is None or difference.largest <= self.largest)
            and difference.margin <= 2 * allowed
        )

    def __str__(self) -> str:
        largest = "" if self.largest is None else f"{self.largest:.1e}, "
        return f"{largest}{self.relative:.1e} of the largest"


def limit_of(entry: Entry | None, output: str, dtype: str, *, real: bool) -> Limit:
    """The bounds of an output, which is an entry's name.

    Args:
        real: with the checkpoint's weights, for which an absolute bound is declared.
    """
    declared = entry.manifest.tolerance.get(output) if entry else None
    if declared is None:
        return Limit(PROJECT[dtype])
    if dtype != "f32":
        return Limit(getattr(declared, dtype) or PROJECT[dtype])
    return Limit(declared.relative or PROJECT["f32"], declared.max if real else None)
