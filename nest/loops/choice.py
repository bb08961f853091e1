"""How loops choose one id of each row from its logits, given a uniform number; `nest.tasks.sampling` says it in numpy.

Filters go in the order of the reference library: penalty, temperature, top-k, top-p, min-p. The most likely id passes
all of them.
"""

from __future__ import annotations

from nest.layers.ops import any as any_
from nest.layers.ops import (
    argmax,
    cast,
    cumsum,
    exp,
    full,
    iota,
    log,
    maximum,
    slice,
    take_along,
    top_k,
    where,
)
from nest.layers.ops import max as max_
from nest.layers.ops import sum as sum_
from nest.layers.tensor import Tensor

__all__ = ["drawn", "drawn_of_top", "log_probability", "penalised"]


def drawn(scores: Tensor, uniform: Tensor, temperature: Tensor, floor: Tensor | None = None) -> Tensor:
    """One id of each row: scores [Batch, Vocab]; uniform, temperature, floor [Batch].

    A temperature of 0 takes the most likely id. `floor` leaves out ids that are less likely than so many times the most
    likely one (min-p; Nguyen et al., 2024, arXiv 2407.01082).
    """
    likely = argmax(scores)
    weights = _over(_heated(scores, temperature), floor)
    return where(temperature > 0.0, _place(weights, uniform, likely), likely)


def drawn_of_top(
    scores: Tensor,
    uniform: Tensor,
    temperature: Tensor,
    most: Tensor,
    mass: Tensor,
    floor: Tensor | None = None,
) -> Tensor:
    """As `drawn`, from the `most` likely ids (top-k; 0 for all), and of these from the likely ones that together have
    the probability `mass` (top-p; Holtzman et al., 2019, arXiv 1904.09751); both Float32 [Batch]."""
    values, ids = top_k(scores, int(scores.shape[1]))
    B, V = values.shape
    rest = where(most > 0.0, most, float(int(V))).reshape(B, 1)
    weights = where(cast(iota(V), "f32") < rest, _heated(values, temperature), 0.0)
    upto = cumsum(weights, axis=1)
    limit = mass.reshape(B, 1) * slice(upto, 1, int(V) - 1, int(V))
    # The first is always within its mass, if only by not having begun.
    weights = _over(where((upto - weights < limit) | (iota(V) < 1), weights, 0.0), floor)
    likely = full((B,), 0, "i32")
    place = where(temperature > 0.0, _place(weights, uniform, likely), likely)
    return take_along(ids, place.reshape(B, 1), axis=1).reshape(B)


def penalised(scores: Tensor, seen: Tensor, penalty: Tensor) -> Tensor:
    """Scores [Batch, Vocab] less `penalty` [Batch] where `seen` [Batch, Vocab] is not 0: over 1, what was said before
    becomes less likely, by division where positive and multiplication where negative (Keskar et al., 2019, arXiv
    1909.05858)."""
    by = penalty.reshape(scores.shape[0], 1)
    return where(seen > 0.0, where(scores < 0.0, scores * by, scores / by), scores)


def log_probability(scores: Tensor, chosen: Tensor) -> Tensor:
    """log softmax(scores)[chosen] of each row: scores [Batch, Vocab], chosen [Batch]; -1 stands for no id."""
    B = scores.shape[0]
    below = scores - max_(scores, 1, keepdims=True)
    taken = take_along(below, maximum(chosen, 0).reshape(B, 1), axis=1).reshape(B)
    # As `greedy` sums: ONNX Runtime's logsumexp is ten times less exact over a vocabulary.
    return taken - log(sum_(exp(below), 1))


def _heated(scores: Tensor, temperature: Tensor) -> Tensor:
    """exp(scores / temperature) of each row, the largest 1."""
    B = scores.shape[0]
    heat = maximum(temperature, 1e-6).reshape(B, 1)
    return exp((scores - max_(scores, 1, keepdims=True)) / heat)


def _over(weights: Tensor, floor: Tensor | None) -> Tensor:
    """Weights whose largest is 1, those under `floor` [Batch] left out."""
    if floor is None:
        return weights
    return where(weights >= floor.reshape(weights.shape[0], 1), weights, 0.0)


def _place(weights: Tensor, uniform: Tensor, otherwise: Tensor) -> Tensor:
    """The first place of a weight whose running sum passes uniform * (sum of weights); weights [Batch, V].

    Rounding may leave none, and may let a running sum grow where the weight is zero: that place is never taken.
    """
    B, V = weights.shape
    upto = cumsum(weights, axis=1)
    sought = uniform.reshape(B, 1) * slice(upto, 1, int(V) - 1, int(V))
    passing = (weights > 0.0) & (upto > sought)
    return where(any_(passing, 1), argmax(cast(passing, "i32")), otherwise)
