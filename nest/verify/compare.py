"""How far two results are from each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Difference", "compare", "worst"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Difference:
    """The distance of a result from what it should be.

    Attributes:
        largest: max|Δ|.
        relative: max|Δ| / max|ref|.
        scale: max|ref|.
        finite: whether the result has neither NaN nor infinity where the reference has none.
        choices: how many argmaxes were compared.
        flips: how many of them differ.
        margin: by how much the reference prefers its own choice, where it prefers it most among the flips.
    """

    largest: float
    relative: float
    scale: float
    finite: bool = True
    choices: int = 0
    flips: int = 0
    margin: float = 0.0


def compare(got: Array, want: Array, *, choices: bool = False) -> Difference:
    """The difference of two arrays of one shape; `choices` compares the argmax of the last axis too."""
    if got.shape != want.shape:
        raise ValueError(f"a result is {got.shape}, and should be {want.shape}")
    if not want.size:
        return Difference(0.0, 0.0, 0.0)
    exact, measured = want.astype(np.float64), got.astype(np.float64)
    finite = bool(np.isfinite(measured).all())
    largest = float(np.abs(measured - exact).max()) if finite else float("inf")
    scale = float(np.abs(exact).max())
    relative = largest / scale if scale else (0.0 if largest == 0 else float("inf"))
    if not choices:
        return Difference(largest, relative, scale, finite)
    return Difference(largest, relative, scale, finite, *_choices(measured, exact))


def _choices(got: Array, want: Array) -> tuple[int, int, float]:
    chosen, right = got.argmax(-1), want.argmax(-1)
    other = np.take_along_axis(want, chosen[..., None], -1)[..., 0]
    margins = want.max(-1) - other
    flipped = chosen != right
    return right.size, int(flipped.sum()), float(margins[flipped].max(initial=0.0))


def worst(differences: Iterable[Difference]) -> Difference:
    """The worst in each respect of several."""
    every = list(differences)
    return Difference(
        max(d.largest for d in every),
        max(d.relative for d in every),
        max(d.scale for d in every),
        all(d.finite for d in every),
        sum(d.choices for d in every),
        sum(d.flips for d in every),
        max(d.margin for d in every),
    )
