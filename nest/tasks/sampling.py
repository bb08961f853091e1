"""Chance that a seed decides: uniform numbers for the loops, and the loops' rule for one step on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError

__all__ = ["Seed", "draw", "penalised", "ranked_weights", "uniforms"]

Seed = int | tuple[int, int]
"""An integer from 0; or two, for several texts of one seed. The first of these is that of the seed alone."""


def uniforms(seed: int | Sequence[Seed], steps: int, rows: int) -> NDArray[np.float32]:
    """Return float32 [steps, rows] in [0, 1).

    A row's numbers depend on its own seed alone, and fewer steps are the beginning of more: a row of a batch is drawn
    as it would be by itself.

    Args:
        seed: one for each row; or a single one, from which each row's is derived: (seed, row).
        steps: how many tokens there may be.
        rows: how many rows.

    Raises:
        InputError: a negative seed, or not one for each row.
    """
    given = [(seed, row) for row in range(rows)] if isinstance(seed, int) else seed
    seeds = [s if isinstance(s, tuple) else (s, 0) for s in given]
    if len(seeds) != rows:
        raise InputError(f"{len(seeds)} seeds were given for {rows} rows; expected one, or one for each row.")
    if any(min(pair) < 0 for pair in seeds):
        raise InputError(f"The seed {min(seeds)[0]} is negative; expected an integer from 0.")
    columns = [np.random.Generator(np.random.PCG64(pair)).random(steps, np.float32) for pair in seeds]
    return np.stack(columns, axis=1)


def draw(
    scores: NDArray[np.float32],
    uniform: float,
    temperature: float,
    most: int = 0,
    mass: float = 1.0,
    floor: float = 0.0,
) -> int:
    """Return the id that `nest.loops` draws: scores [Vocab] of one row; see `ranked_weights`."""
    if temperature <= 0:
        return int(scores.argmax())
    order, weights = ranked_weights(scores, temperature, most, mass, floor)
    passing = (weights > 0) & (np.cumsum(weights) > uniform * weights.sum())
    return int(order[passing.argmax()] if passing.any() else scores.argmax())


def ranked_weights(
    scores: NDArray[np.float32], temperature: float, most: int = 0, mass: float = 1.0, floor: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return ids and how they are weighted against each other, the largest 1 and 0 for those that are filtered out.

    Args:
        scores: float32 [Vocab].
        temperature: over 0.
        most: top-k; 0 for all. mass: top-p, of those that are left; 1 for all. floor: min-p, of those that are left; 0
            for all.

    Returns:
        Ids int64 [Vocab], the most likely first where they had to be ranked, else in order; weights float64 [Vocab].
    """
    ranked = most > 0 or mass < 1
    order = np.argsort(-scores, kind="stable") if ranked else np.arange(len(scores))
    weights = np.exp((scores[order].astype(np.float64) - scores.max()) / max(temperature, 1e-6))
    if ranked:
        weights[most or len(weights) :] = 0
        begun = np.cumsum(weights) - weights
        weights[1:][begun[1:] >= mass * weights.sum()] = 0
    weights[weights < floor] = 0
    return order, weights


def penalised(scores: NDArray[np.float32], seen: NDArray[np.float32], penalty: float) -> NDArray[np.float32]:
    """Return scores [..., Vocab] less `penalty` where `seen` is not 0, as `nest.loops.choice` does."""
    by = np.float32(penalty)
    return np.where(seen > 0, np.where(scores < 0, scores * by, scores / by), scores)
