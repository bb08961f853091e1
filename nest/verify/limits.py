"""How far an output may be from the oracle: what the entry declares, or the project's own bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nest.registry import Entry
from nest.verify.compare import Difference

__all__ = ["PROJECT", "QUANTIZED", "UNMEASURED", "Limit", "limit_of", "limit_quantized"]

PROJECT: Mapping[str, float] = {"f32": 2e-5, "f16": 2e-2, "bf16": 1e-1}
"""max|Δ| / max|ref| that no entry may exceed with random weights, by element type; an entry declares less."""

UNMEASURED = 1e-4
"""The same in f32 with published weights, whose activations differ by orders of magnitude, where none is declared."""

QUANTIZED: Mapping[str, float] = {"int8": 3e-1, "int4": 5e-1}
"""The same for weights in fewer bits, whatever the element type; the coarsest scheme of a model decides."""


@dataclass(frozen=True)
class Limit:
    """A bound of max|Δ| / max|ref|, of max|Δ|, or of both."""

    relative: float | None = None
    largest: float | None = None

    def passed_by(self, found: Difference) -> bool:
        """Whether a result is further off."""
        return (self.relative is not None and found.relative > self.relative) or (
            self.largest is not None and found.largest > self.largest
        )

    def margin(self, scale: float) -> float:
        """The margin below which a choice among values up to `scale` is a matter of the rounding that is allowed."""
        bounds = [self.relative * scale if self.relative is not None else None, self.largest]
        return 2 * min((b for b in bounds if b is not None), default=float("inf"))

    def admits(self, found: Difference) -> bool:
        """Whether a result is near enough, is finite, and chooses as the reference where rounding does not decide."""
        return found.finite and not self.passed_by(found) and found.margin <= self.margin(found.scale)

    def __str__(self) -> str:
        relative = "" if self.relative is None else f"{self.relative:.1e} of the largest"
        return ", ".join(filter(None, ["" if self.largest is None else f"{self.largest:.1e}", relative]))


def limit_of(entry: Entry | None, output: str, dtype: str, *, real: bool) -> Limit:
    """The bounds of an output, which is an entry's name.

    Args:
        real: with the checkpoint's weights, for which an absolute bound is declared.
    """
    declared = entry.manifest.tolerance.get(output) if entry else None
    if declared is None:
        return Limit(UNMEASURED if real and dtype == "f32" else PROJECT[dtype])
    if dtype != "f32":
        return Limit(getattr(declared, dtype) or PROJECT[dtype])
    if real and declared.max is not None:
        return Limit(largest=declared.max)
    return Limit(UNMEASURED if real else declared.relative or PROJECT["f32"])


def limit_quantized(asked: str | Mapping[str, str | None]) -> Limit:
    """The bound of every output of a model whose weights are quantized as `nest.load` was asked to."""
    schemes = asked.values() if isinstance(asked, Mapping) else [asked]
    return Limit(max(QUANTIZED[s] for s in schemes if s is not None))
